"""Explicit vectors of `LANES` numbers in compiled code, where LLVM does not vectorise.

LLVM vectorises only the innermost dimension of a loop, so a sum over an outer dimension goes
through memory. With explicit vectors, the sums of a block of outputs stay in registers.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel.manager import DataModelManager
from numba.core.typing.context import BaseContext
from numba.extending import intrinsic, models, register_model

from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

LANES = 16
_FLOATS = ir.VectorType(ir.FloatType(), LANES)


class _Vector(types.Type):
    """`LANES` float32 numbers."""


VECTOR = _Vector("vector")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    """An LLVM vector."""

    def __init__(self, manager: DataModelManager, kind: types.Type) -> None:
        super().__init__(manager, kind, _FLOATS)


def _place(builder: ir.IRBuilder, array: ir.Value, index: ir.Value) -> ir.Value:
    """Address of `LANES` numbers of a contiguous array [n], from `index` on, as a vector."""
    first = builder.gep(builder.extract_value(array, 4), [index])
    return builder.bitcast(first, _FLOATS.as_pointer())


def _filled(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
    """A vector of one number."""
    undefined = ir.Constant(_FLOATS, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, zeros)


@intrinsic
def load(context: BaseContext, array: types.Array, index: types.Integer) -> Any:
    """The numbers of `array` from `index` on."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        return builder.load(_place(builder, *arguments), align=4)

    return VECTOR(array, types.intp), code


@intrinsic
def fetch(context: BaseContext, array: types.Array, index: types.Integer) -> Any:
    """Move the numbers from `index` on into the first-level cache, without waiting.

    Processors do this for what is read in order, but not beyond a page of 4 KB. `index` may be
    beyond the end.
    """

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        place = builder.bitcast(_place(builder, *arguments), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, *[ir.IntType(32)] * 3])
        call = builder.module.declare_intrinsic("llvm.prefetch.p0", fnty=kind)
        to_write, near, data = (ir.IntType(32)(value) for value in (1, 3, 1))
        builder.call(call, [place, to_write, near, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), code


@intrinsic
def spread(context: BaseContext, array: types.Array, index: types.Integer) -> Any:
    """A vector filled with `array[index]`; negative indices are not supported."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        array, index = arguments
        number = builder.load(builder.gep(builder.extract_value(array, 4), [index]))
        return _filled(builder, number)

    return VECTOR(array, types.intp), code


@intrinsic
def store(context: BaseContext, array: types.Array, index: types.Integer, vector: _Vector) -> Any:
    """Write a vector to `array` from `index` on."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        array, index, vector = arguments
        builder.store(vector, _place(builder, array, index), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


@intrinsic
def splat(context: BaseContext, number: types.Float) -> Any:
    """A vector of one number."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        return _filled(builder, arguments[0])

    return VECTOR(types.float32), code


@intrinsic
def fma(context: BaseContext, x: _Vector, y: _Vector, z: _Vector) -> Any:
    """Fused multiply-add: x y + z, rounded once."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        x, y, z = arguments
        return builder.fadd(builder.fmul(x, y, flags=("contract",)), z, flags=("contract",))

    return VECTOR(VECTOR, VECTOR, VECTOR), code


@intrinsic
def quotient(context: BaseContext, x: _Vector, y: _Vector) -> Any:
    """Elementwise x divided by y, rounded correctly."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        return builder.fdiv(*arguments)

    return VECTOR(VECTOR, VECTOR), code


@intrinsic
def root(context: BaseContext, x: _Vector) -> Any:
    """Elementwise square root, rounded correctly."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        kind = ir.FunctionType(_FLOATS, [_FLOATS])
        name = f"llvm.sqrt.v{LANES}f32"
        return builder.call(builder.module.declare_intrinsic(name, fnty=kind), arguments)

    return VECTOR(VECTOR), code


@intrinsic
def total(context: BaseContext, x: _Vector) -> Any:
    """The sum of a vector's numbers, in a fixed order."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        (parts,) = arguments
        half = LANES
        while half > 1:  # add the upper half to the lower one
            half //= 2
            kind = ir.VectorType(ir.IntType(32), LANES)
            order = [(lane + half) % LANES for lane in range(LANES)]
            upper = builder.shuffle_vector(parts, parts, ir.Constant(kind, order))
            parts = builder.fadd(parts, upper)
        return builder.extract_element(parts, ir.IntType(32)(0))

    return types.float32(VECTOR), code


@intrinsic
def larger(context: BaseContext, x: _Vector, y: _Vector) -> Any:
    """Elementwise maximum; y where one of the two numbers is NaN."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        x, y = arguments
        return builder.select(builder.fcmp_ordered(">", x, y), x, y)

    return VECTOR(VECTOR, VECTOR), code


@intrinsic
def where_equal(context: BaseContext, x: _Vector, y: _Vector, z: _Vector) -> Any:
    """Elementwise z where x equals y, else 0."""

    def code(context, builder, signature, arguments):  # noqa: ANN001, ANN202
        x, y, z = arguments
        zeros = ir.Constant(_FLOATS, [0.0] * LANES)
        return builder.select(builder.fcmp_ordered("==", x, y), z, zeros)

    return VECTOR(VECTOR, VECTOR, VECTOR), code
