"""Eight float32 numbers as one value in numba kernels. Each operation is one LLVM vector instruction.

Memory is given by address (`array.ctypes.data`): at each call numba counts the references of each array, which takes
longer than what a kernel does with some eights of numbers.
"""

import operator

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

LANES = 8
FLOAT, INT = ir.FloatType(), ir.IntType(32)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)
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


def _pointer(builder, address, index, item=FLOAT, kind=FLOATS):
    first = builder.inttoptr(address, item.as_pointer())
    return builder.bitcast(builder.gep(first, [index]), kind.as_pointer())


@intrinsic
def load(typing, address, index):
    def code(context, builder, signature, args):
        return builder.load(_pointer(builder, *args), align=4)

    return lanes(types.int64, types.int64), code


@intrinsic
def store(typing, address, index, value):
    def code(context, builder, signature, args):
        builder.store(args[2], _pointer(builder, *args[:2]), align=4)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, lanes), code


@intrinsic
def integer(typing, address, index):
    def code(context, builder, signature, args):
        return builder.load(_pointer(builder, *args, INT, INT))

    return types.int32(types.int64, types.int64), code


@intrinsic
def store_integers(typing, address, value):
    def code(context, builder, signature, args):
        builder.store(builder.fptosi(args[1], INTS), builder.inttoptr(args[0], INTS.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.none(types.int64, lanes), code


@intrinsic
def store_linear(typing, address, values, form):
    """Write size · values[left] + values[right] + first, eight integers each. `form` has left, right, size, first."""

    def code(context, builder, signature, args):
        address, values, form = args
        left, right, size, first = (
            builder.load(_pointer(builder, form, ir.Constant(ir.IntType(64), k), INT, INT)) for k in range(4)
        )
        a, b = (builder.load(_pointer(builder, values, row, INTS, INTS), align=4) for row in (left, right))
        written = builder.add(builder.add(builder.mul(_splat(builder, size), a), b), _splat(builder, first))
        builder.store(written, builder.inttoptr(address, INTS.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.none(*[types.int64] * 3), code


def _splat(builder, number):
    nothing = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, nothing, _constant(0))


@intrinsic
def splat(typing, value):
    return lanes(types.float32), lambda context, builder, signature, args: _splat(builder, args[0])


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
def store_transposed(typing, address, index, a, b, c, d, e, f, g, h):
    """Write lane k of the i-th value to index + 8k + i."""

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
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, *[lanes] * LANES), code
