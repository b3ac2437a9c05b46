"""Eight float32 numbers as one value in numba kernels. Each operation is one LLVM vector instruction."""

import operator

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, models, overload, register_model

LANES = 8
FLOATS = ir.VectorType(ir.FloatType(), LANES)
INTS = ir.VectorType(ir.IntType(32), LANES)
FUSED = ("contract", "nsz")  # a·b + c in one instruction, where there is one


class Lanes(types.Type):
    def __init__(self):
        super().__init__(name="Lanes")


lanes = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, FLOATS)


def _constant(value) -> ir.Constant:
    return ir.Constant(INTS, [value] * LANES)


def _pointer(builder, address, index):
    first = builder.inttoptr(address, ir.FloatType().as_pointer())
    return builder.bitcast(builder.gep(first, [index]), FLOATS.as_pointer())


@intrinsic
def _read(typing, address, index):
    def code(context, builder, signature, args):
        return builder.load(_pointer(builder, *args), align=4)

    return lanes(types.int64, types.int64), code


@intrinsic
def _write(typing, address, index, value):
    def code(context, builder, signature, args):
        builder.store(args[2], _pointer(builder, *args[:2]), align=4)
        return args[2]

    return lanes(types.int64, types.int64, lanes), code


@njit(inline="always")
def load(array, index):
    return _read(array.ctypes.data, index)


@njit(inline="always")
def store(array, index, value):
    _write(array.ctypes.data, index, value)


@intrinsic
def _write_cells(typing, out, index, codes, left, right, size, first):
    """out[index] = first + size · codes[left] + codes[right], eight 32-bit integers each."""

    def code(context, builder, signature, args):
        def pointer(address, row):
            numbers = builder.inttoptr(address, INTS.as_pointer())
            return builder.gep(numbers, [row])

        def splatted(number):
            one = builder.insert_element(ir.Constant(INTS, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, one, _constant(0))

        out, index, codes, left, right, size, first = args
        a, b = (builder.load(pointer(codes, row), align=4) for row in (left, right))
        cells = builder.add(builder.add(splatted(first), builder.mul(splatted(size), a)), b)
        builder.store(cells, pointer(out, index), align=4)
        return index

    return types.int64(*[types.int64] * 5, types.int32, types.int32), code


@njit(inline="always")
def store_cells(out, index, codes, left, right, size, first):
    _write_cells(out.ctypes.data, index, codes.ctypes.data, left, right, size, first)


@intrinsic
def splat(typing, value):
    def code(context, builder, signature, args):
        nothing = ir.Constant(FLOATS, ir.Undefined)
        first = builder.insert_element(nothing, args[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, nothing, _constant(0))

    return lanes(types.float32), code


def _operation(n_arguments: int, instruction):
    typed = lanes(*[lanes] * n_arguments), lambda context, builder, signature, args: instruction(builder, *args)
    return intrinsic((lambda typing, a: typed) if n_arguments == 1 else (lambda typing, a, b: typed))


def _floor(builder, a):
    function = ir.FunctionType(FLOATS, [FLOATS])
    name = f"llvm.floor.v{LANES}f32"
    try:
        declared = builder.module.get_global(name)
    except KeyError:
        declared = ir.Function(builder.module, function, name)
    return builder.call(declared, [a])


def _power_of_two(builder, a):
    exponent = builder.add(builder.fptosi(a, INTS), _constant(127))
    return builder.bitcast(builder.shl(exponent, _constant(23)), FLOATS)


floor = _operation(1, _floor)
power_of_two = _operation(1, _power_of_two)  # 2ⁿ for whole n from −126 to 127
larger = _operation(2, lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
at_most = _operation(2, lambda builder, a, b: builder.uitofp(builder.fcmp_ordered("<=", a, b), FLOATS))  # 1 or 0
_add = _operation(2, lambda builder, a, b: builder.fadd(a, b, flags=FUSED))
_sub = _operation(2, lambda builder, a, b: builder.fsub(a, b, flags=FUSED))
_mul = _operation(2, lambda builder, a, b: builder.fmul(a, b, flags=FUSED))


def _as_operator(symbol, function):
    @overload(symbol)
    def of_lanes(a, b):
        if isinstance(a, Lanes) and isinstance(b, Lanes):
            return lambda a, b: function(a, b)


for _symbol, _function in ((operator.add, _add), (operator.iadd, _add), (operator.sub, _sub), (operator.mul, _mul)):
    _as_operator(_symbol, _function)


@intrinsic
def _write_transposed(typing, address, index, a, b, c, d, e, f, g, h):
    def code(context, builder, signature, args):
        rows, half = args[2:], LANES // 2
        low, high = (
            ir.Constant(INTS, [v for k in ks for v in (k, LANES + k)]) for ks in (range(half), range(half, LANES))
        )
        for _ in range(3):  # halves interleaved log2(8) times
            pairs = list(zip(rows[:half], rows[half:], strict=True))
            rows = [builder.shuffle_vector(x, y, mask) for x, y in pairs for mask in (low, high)]
        for k, row in enumerate(rows):
            position = builder.add(args[1], ir.Constant(ir.IntType(64), LANES * k))
            builder.store(row, _pointer(builder, args[0], position), align=4)
        return args[2]

    return lanes(types.int64, types.int64, *[lanes] * LANES), code


@njit(inline="always")
def store_transposed(array, index, a, b, c, d, e, f, g, h):
    """array[index + 8k + i] = lane k of the i-th value."""
    _write_transposed(array.ctypes.data, index, a, b, c, d, e, f, g, h)
