"""Named tuples of many arrays, as kernels hand them to each other: by the address of their words.

Numba hands over an array as seven words and a tuple as those of all its items: a hundred and more
for the state of a core, unpacked and packed again by each kernel, which is most of what there would
be to compile. Here a *bundle* is one pointer to memory that the entry fills: for each array where
its data are and its lengths, for each number itself. Nothing writes there, so it may be read
whenever that suits the optimiser. Only its fields can be asked for.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from llvmlite import ir as llvm_ir
from numba import extending as numba_extending
from numba.core import cgutils as numba_cgutils
from numba.core import imputils as numba_imputils
from numba.core import types as numba_types
from numba.core.typing import templates as numba_templates

# Typed in part only.
ir: Any = llvm_ir
cgutils: Any = numba_cgutils
types: Any = numba_types
extending: Any = numba_extending
imputils: Any = numba_imputils
templates: Any = numba_templates

WORD = ir.IntType(64)
# Shorter tuples are handed over as they are.
FEWEST_WORDS = 8
WORDS_OF_ARRAY = 5


class Words(ir.ArrayType):  # type: ignore[misc]
    """The type of the memory of a bundle, told from others."""

    def __init__(self, count: int) -> None:
        super().__init__(WORD, count)


class Bundle(types.Type):  # type: ignore[misc]
    """What numba knows a bundle by."""

    def __init__(self, kind: Any) -> None:
        self.tuple = kind
        self.types, self.fields = kind.types, kind.fields
        self.place, self.words = {}, 0
        for field, each in zip(self.fields, self.types, strict=True):
            self.place[field] = self.words
            self.words += 1 + each.ndim if isinstance(each, types.Array) else 1
        digest = hashlib.sha256(str(kind).encode()).hexdigest()[:8]
        super().__init__(name=f"{kind.instance_class.__name__}{digest}")

    @property
    def key(self) -> Any:
        return self.tuple


def bundled(kind: Any) -> Any:
    """The type of an argument as an entry takes it: a bundle, or what it was."""
    if not isinstance(kind, (types.NamedTuple, types.NamedUniTuple)):
        return kind
    words = 0
    for each in kind.types:
        if isinstance(each, types.Array) and each.layout == "C" and each.aligned:
            words += WORDS_OF_ARRAY + 2 * each.ndim
        elif each in (types.int64, types.float64, types.boolean):
            words += 1
        else:
            return kind
    return Bundle(kind) if words >= FEWEST_WORDS else kind


@extending.register_model(Bundle)
class _Model(extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, Words(kind.words).as_pointer())


@extending.infer_getattr
class _Fields(templates.AttributeTemplate):  # type: ignore[misc]
    key = Bundle

    def generic_resolve(self, bundle: Any, field: str) -> Any:
        if field in bundle.place:
            return bundle.types[bundle.fields.index(field)]
        return None


@imputils.lower_getattr_generic(Bundle)
def _field(context: Any, builder: Any, bundle: Any, address: Any, field: str) -> Any:
    """Instructions that read a field."""
    kind = bundle.types[bundle.fields.index(field)]
    place = bundle.place[field]
    if not isinstance(kind, types.Array):
        word = _at(builder, address, place, context.get_data_type(kind))
        return context.data_model_manager[kind].from_data(builder, builder.load(word))
    lengths = [builder.load(_at(builder, address, place + 1 + k, WORD)) for k in range(kind.ndim)]
    array = array_of(context, builder, kind, lengths)
    model = context.data_model_manager[kind]
    data_type = model.get_member_fe_type("data")
    data = builder.load(_at(builder, address, place, context.get_value_type(data_type)))
    array = builder.insert_value(array, data, model.get_field_position("data"))
    return imputils.impl_ret_borrowed(context, builder, kind, array)


def array_of(context: Any, builder: Any, kind: Any, lengths: list) -> Any:
    """An array that lies in order, but for where its data are."""
    model = context.data_model_manager[kind]
    whole = model.get_value_type()
    item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    known = {
        "meminfo": None, "parent": None, "itemsize": item,
        "strides": [ir.Undefined] * (kind.ndim - 1) + [item],
    }  # fmt: skip
    constants = [
        _constant(kind_of, known.get(name, ir.Undefined))
        for name, kind_of in zip(model._fields, whole.elements, strict=True)
    ]
    array = ir.Constant(whole, constants)
    count = functools.reduce(builder.mul, lengths)
    array = builder.insert_value(array, count, model.get_field_position("nitems"))
    step: Any = WORD(item)
    for k in reversed(range(kind.ndim)):
        array = builder.insert_value(array, lengths[k], (model.get_field_position("shape"), k))
        if k < kind.ndim - 1:
            step = builder.mul(step, lengths[k + 1])
            array = builder.insert_value(array, step, (model.get_field_position("strides"), k))
    return array


def _constant(kind: Any, value: Any) -> Any:
    if isinstance(value, list):
        return ir.Constant(kind, [ir.Constant(WORD, each) for each in value])
    return ir.Constant(kind, value)


def filled(context: Any, builder: Any, bundle: Any, values: list) -> Any:
    """Instructions that write the fields of a bundle to memory; its address."""
    address = cgutils.alloca_once(builder, Words(bundle.words))
    for field, kind, value in zip(bundle.fields, bundle.types, values, strict=True):
        place = bundle.place[field]
        parts = [value]
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            parts = [array.data, *cgutils.unpack_tuple(builder, array.shape)]
        else:
            parts = [context.data_model_manager[kind].as_data(builder, value)]
        for k, part in enumerate(parts):
            builder.store(part, _at(builder, address, place + k, part.type))
    return address


def _at(builder: Any, address: Any, place: int, kind: Any) -> Any:
    """The address of a word."""
    return builder.bitcast(builder.gep(address, [WORD(0), WORD(place)]), kind.as_pointer())


def tell_of_bundles(module: ir.Module) -> None:
    """Let the optimiser know that nothing changes the words of bundles while a function runs."""
    for function in module.functions:
        for argument in function.args if function.blocks else ():
            words = getattr(argument.type, "pointee", None)
            if isinstance(words, Words):
                argument.add_attribute("noalias")
                argument.attributes.dereferenceable = WORD.width // 8 * words.count
