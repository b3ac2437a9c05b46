"""Base of the configuration's models, and what pydantic says of a wrong value as one line: file, key, what is allowed."""

import inspect
import re
import reprlib
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from agglearn import registry
from agglearn.errors import ConfigError
from agglearn.settings import meant
from agglearn_workflow import digests

FORMS: dict[str, str] = {}  # pattern of a text → what it is


def key(description: str | None = None, default: Any = None, **limits: Any) -> Any:
    """A key that may be left out."""
    return Field(default, **limits | ({"description": description} if description else {}))


def form(pattern: str, words: str) -> Any:
    FORMS[pattern] = words
    return Field(pattern=pattern, description=words)


def refusal(text: str, name: str = "") -> PydanticCustomError:
    """An error with a message of its own, at the key of this name within the model."""
    return PydanticCustomError("refusal", "{text}", {"text": text, "name": name})


# -- names and classes ------------------------------------------------------------------------------------------------


def describe_unknown(name: object, allowed: Collection | None) -> str:
    """What is wrong with a name that is none of the allowed ones. It is empty where nothing is, or all are allowed."""
    if allowed is None or name in [*allowed]:
        return ""
    return f"{name!r} is not known{meant(name, allowed)}; there are {', '.join(sorted(allowed))}"


def check_known(name: object, allowed: Collection | None, path: str = "") -> None:
    if wrong := describe_unknown(name, allowed):
        raise refusal(wrong, path)


def check_name(name: object, allowed: Collection, file: str, path: str) -> None:
    if wrong := describe_unknown(name, allowed):
        raise ConfigError(f"{file}: {path}: {wrong}")


def member_of(kind: str) -> AfterValidator:
    """A name that the context of a validation has under this kind, where there is a context."""

    def check(name: str, info: ValidationInfo) -> str:
        check_known(name, (info.context or {}).get(kind))
        return name

    return AfterValidator(check)


def class_of(base: str) -> tuple[Any, Any]:
    """Metadata of the dotted path of a subclass of `base`."""

    def check(dotted: str) -> str:
        if wrong := class_fault(dotted, base):
            raise refusal(wrong)
        return dotted

    return AfterValidator(check), Field(description=f"dotted path of a subclass of {base.replace('.base.', '.')}")


def class_fault(dotted: object, base: str | None = None) -> str | None:
    """What is wrong with the name of a class, or of a subclass of `base`. It is None where nothing is."""
    kind = f"a subclass of {base}" if base else "a class"
    if not isinstance(dotted, str):
        return f"{reprlib.repr(dotted)} is not allowed; give the dotted path of {kind}"
    try:
        target = registry.find(dotted) if digests.is_followed(dotted) or not base else None
    except Exception as error:
        return f"{dotted!r} cannot be imported: {type(error).__name__}: {error}; mend its module"
    if not inspect.isclass(target):
        return f"there is no class {dotted!r}{_describe_place(dotted)}; give the dotted path of {kind}"
    if base and not registry.is_subclass(dotted, base):
        return f"{dotted!r} is not a subclass of {base.rpartition('.')[2]} ({base})"
    return None


def _describe_place(dotted: str) -> str:
    """Where a class that is not found should be: code of one's own lies in a folder under `code:`."""
    if dotted.startswith("agglearn."):
        return ""
    module = dotted.rpartition(".")[0]
    file = digests.find_file(module)
    return f" in {file}" if file else f": no folder under code: (config/config.yaml) has a module {module!r}"


# -- models -----------------------------------------------------------------------------------------------------------


def state_conditions(schema: dict, model: type["Model"]) -> None:
    """Add to a JSON schema what each kind needs, and what it makes no use of. Its title goes, which is a name of ours."""
    del schema["title"]
    for value, (needed, unused) in model.USES.items():
        then = {"required": needed.split(), "properties": dict.fromkeys(unused.split(), False)}
        schema.setdefault("allOf", []).append({"if": {"properties": {model.KIND: {"const": value}}}, "then": then})


class Model(BaseModel):
    """Base of all models: keys and types are exact."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, json_schema_extra=state_conditions)
    KIND: ClassVar[str] = ""  # key that names what the other keys are for
    USES: ClassVar[Mapping[str, tuple[str, str]]] = {}  # value of that key → keys that it needs, keys without use

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown(cls, value: Any) -> Any:
        allowed = sorted(field.alias or name for name, field in cls.model_fields.items())
        if isinstance(value, dict) and cls.model_config["extra"] == "forbid":
            for wrong in sorted(set(value) - set(allowed), key=str):
                raise refusal(f"unknown key {wrong!r}{meant(wrong, allowed)}; allowed: {', '.join(allowed)}")
        return value

    @model_validator(mode="after")
    def check_kind(self) -> Self:
        needed, unused = self.USES.get(getattr(self, self.KIND, ""), ("", ""))
        for lacking in set(needed.split()) - self.model_fields_set:
            raise refusal(f"key {lacking!r} is missing")
        self.refuse(unused)
        return self

    def refuse(self, keys: str) -> None:
        """Refuse keys, separated by spaces."""
        for name in keys.split():
            if name in self.model_fields_set:
                raise refusal("the key is not allowed here; its kind or predicate makes no use of it", name)


# -- errors -----------------------------------------------------------------------------------------------------------


def validate(value: object, model: type[Model], file: str, *prefix: str, context: dict | None = None) -> None:
    try:
        model.model_validate(value, context=context)
    except ValidationError as error:
        keys, text = _nearest([_problem(e, value) for e in error.errors(include_url=False)])
        raise ConfigError(f"{file}: {'.'.join(map(str, [*prefix, *keys])) or 'top level'}: {text}") from None


class Problem(NamedTuple):
    """What is wrong at a place: a whole message, or what the value must be or have."""

    keys: tuple
    value: Any
    text: str = ""
    must: str = ""


def _problem(error: ErrorDetails, value: Any) -> Problem:
    """An error at its place in the file: without names of types and alternatives, which pydantic puts between keys."""
    kind, context, last = error["type"], error.get("ctx", {}), ("", *error["loc"])[-1]
    keys: tuple = ()
    for item in error["loc"][:-1] if kind == "missing" else error["loc"]:
        items = dict(enumerate(value)) if isinstance(value, list) else value
        if isinstance(items, dict) and item in items:
            keys, value = (*keys, item), items[item]
    if last == "[key]":
        keys, value = keys[:-1], error["input"]
    if kind == "refusal":
        return Problem((*keys, context["name"]) if context["name"] else keys, value, context["text"])
    if kind == "missing":
        return Problem(keys if isinstance(value, dict) else keys[:-1], value, f"key {last!r} is missing")
    if kind == "union_tag_not_found":
        return Problem(keys, value, f"key {context['discriminator']} is missing")
    if kind == "union_tag_invalid":
        return Problem((*keys, "kind"), context["tag"], must=f"be one of {context['expected_tags']}")
    if kind == "string_pattern_mismatch":
        return Problem(keys, value, f"{value!r} is not allowed; {FORMS[context['pattern']]}")
    must = error["msg"].partition(" should ")[2].replace("valid dictionary", "mapping (name: value)")
    return Problem(keys, value, must=re.sub("( or instance| or object| after validation).*", "", must))


def _nearest(problems: list[Problem]) -> tuple[tuple, str]:
    """The outermost problem. Where a value has parts, an alternative that looked into them counts alone."""
    inner = {p.keys[:depth] for p in problems for depth in range(len(p.keys))}
    outer = [p for p in problems if p.text or p.keys not in inner]
    keys = min((p.keys for p in outer), key=lambda keys: (len(keys), str(keys)))
    nearest = sorted((p for p in outer if p.keys == keys), key=lambda p: not p.text)
    value = nearest[0].value
    must = " or ".join(dict.fromkeys(p.must for p in nearest))
    return keys, nearest[0].text or f"{value!r} is not allowed; it must {must}"
