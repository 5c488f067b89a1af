"""The rows of the table of operators, linked into the compiled loops.

The loops hold the built-in rows, and are kept on disk. A user's rows are compiled by themselves,
and the loops find them through a pointer, so that nothing else is compiled anew.
"""

import inspect
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import cfunc, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from pmsr.equation.operators import (
    BUILT_IN,
    BUILT_IN_ROWS,
    FIRST_OPERATOR,
    OPERATORS,
    Operator,
    added_operators,
    digest_rows,
)
from pmsr.threads import ONE_AT_A_TIME

# Any: Numba comes without types.

# Where the function of the added rows is; 0 while there are none. Loops that come from the disk
# find it by the name of the symbol, in every process at another address.
_CELL = np.zeros(1, np.intp)
_SYMBOL = "pmsr_added_operators"
binding.add_symbol(_SYMBOL, _CELL.ctypes.data)

VALUE, SLOPE_A, SLOPE_B = range(3)
_kept: list[Any] = []  # also those of earlier tables: another thread may be in the middle of one
_followed = BUILT_IN

_jit = njit(error_model="numpy", nogil=True)


@intrinsic
def _added(typing: Any, code: Any, a: Any, b: Any, v: Any, which: Any) -> Any:
    """Call the function of the added rows; without any, nothing is a number."""
    double, number = types.float64, types.int64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        module = builder.module
        cell = module.globals.get(_SYMBOL)
        if cell is None:
            cell = ir.GlobalVariable(module, context.get_value_type(types.intp), _SYMBOL)
            cell.linkage = "external"
        of = [context.get_value_type(one) for one in signature.args]
        kind = ir.FunctionType(context.get_value_type(double), of)
        address = builder.load(cell)
        nothing = ir.Constant(context.get_value_type(double), float("nan"))
        result = cgutils.alloca_once_value(builder, nothing)
        with builder.if_then(builder.icmp_unsigned("!=", address, address.type(0))):
            function = builder.inttoptr(address, kind.as_pointer())
            builder.store(builder.call(function, arguments), result)
        return builder.load(result)

    return double(number, double, double, double, number), generate


def follow_table() -> None:
    """Compile what users have added, unless that is done: before loops are called."""
    global _followed
    if OPERATORS.fingerprint == _followed:
        return
    with ONE_AT_A_TIME:
        fingerprint = OPERATORS.fingerprint
        if fingerprint == _followed:
            return  # another thread was faster
        rows = list(OPERATORS.values())
        if digest_rows(rows[: len(BUILT_IN_ROWS)]) != BUILT_IN:
            raise ValueError(
                "A built-in operator was taken out of the table or replaced. Give an operator of "
                "your own another name, and add it with pmsr.add_operator."
            )
        made = _compile_added(added_operators())
        _kept.append(made)
        _CELL[0] = made.address
        _followed = fingerprint


def _compile_added(rows: tuple[Operator, ...]) -> Any:
    """Compile one function of all added rows: by code, their values and their slopes.

    A row may raise an error, which cannot leave this function: then the value is not a number.
    """
    lines = ["def added(code, a, b, v, which):", "    try:"]
    names: dict[str, Any] = {"nan": np.nan}
    for code, row in enumerate(rows, FIRST_OPERATOR + len(BUILT_IN_ROWS)):
        names[f"f{code}"], names[f"g{code}"] = _jit(row.value), _jit(row.derivative)
        x = "a" if row.arity == 1 else "a, b"
        lines += [f"        if code == {code}:", "            if which == 0:"]
        lines += [f"                return float(f{code}({x}))"]
        if row.arity == 1:
            lines += ["            if which == 2:", "                return 0.0"]
            lines += [f"            return float(g{code}(a, v))"]
        else:
            lines += [f"            slopes = g{code}(a, b, v)"]
            lines += ["            return float(slopes[0] if which == 1 else slopes[1])"]
    lines += ["        return nan", "    except Exception:", "        return nan"]
    exec("\n".join(lines), names)
    return cfunc("float64(int64, float64, float64, float64, int64)", error_model="numpy")(
        names["added"]
    )


def compile_values() -> Callable[..., Any]:
    """Link the rows' values into one compiled ``apply(code, a, b, out)`` over whole arrays."""
    lines = ["for i in range(out.size):", f"    out[i] = added(code, a[i], b[i], nan, {VALUE})"]
    branches = {}
    for code, row in enumerate(BUILT_IN_ROWS, FIRST_OPERATOR):
        value = f"f{code}(a[i])" if row.arity == 1 else f"f{code}(a[i], b[i])"
        branches[code] = ["for i in range(out.size):", f"    out[i] = {value}"]
    return _link("code, a, b, out", branches, lines, [row.value for row in BUILT_IN_ROWS])


def compile_derivatives() -> Callable[..., Any]:
    """Link the rows' derivatives into one compiled ``push(code, a, b, v, g, g_a, g_b)``.

    It adds to ``g_a`` and ``g_b`` what the adjoint ``g`` of the value ``v`` sends down to the
    arguments ``a`` and ``b``. An argument without parameters is sent an empty adjoint, and skipped.
    """
    branches = {}
    for code, row in enumerate(BUILT_IN_ROWS, FIRST_OPERATOR):
        branches[code] = ["for i in range(g_a.size):"]
        if row.arity == 1:
            branches[code] += [f"    g_a[i] += g[i] * f{code}(a[i], v[i])"]
        else:
            branches[code] += [f"    g_a[i] += g[i] * f{code}(a[i], b[i], v[i])[0]"]
            branches[code] += ["for i in range(g_b.size):"]
            branches[code] += [f"    g_b[i] += g[i] * f{code}(a[i], b[i], v[i])[1]"]
    lines = ["for i in range(g_a.size):"]
    lines += [f"    g_a[i] += g[i] * added(code, a[i], b[i], v[i], {SLOPE_A})"]
    lines += ["for i in range(g_b.size):", f"    s = added(code, a[i], b[i], v[i], {SLOPE_B})"]
    # Of a row with one argument, b is that argument, and its slope is 0.
    lines += ["    if s != 0.0:", "        g_b[i] += g[i] * s"]
    functions = [row.derivative for row in BUILT_IN_ROWS]
    return _link("code, a, b, v, g, g_a, g_b", branches, lines, functions)


def _link(
    arguments: str, branches: dict[int, list[str]], otherwise: list[str], functions: list[Any]
) -> Any:
    """Compile one function with a branch for each code, in which f and the code is the row's.

    Written as text, because a chain of functions, one for each row, is optimised by LLVM once for
    each of its links: ten seconds instead of three.
    """
    lines = [f"def linked({arguments}):"]
    for code, branch in branches.items():
        lines += [f"    if code == {code}:", *(f"        {line}" for line in branch)]
        lines += ["        return"]
    lines += [f"    {line}" for line in otherwise]
    names = {f"f{code}": _jit(one) for code, one in enumerate(functions, FIRST_OPERATOR)}
    namespace: dict[str, Any] = {**names, "nan": np.nan, "added": _added}
    exec("\n".join(lines), namespace)
    return _jit(namespace["linked"])


def _digest_linking() -> int:
    digest = blake2b(BUILT_IN.to_bytes(8, "big"), digest_size=7)
    for function in (compile_values, compile_derivatives, _link, _added._defn):
        digest.update(inspect.getsource(function).encode())
    return int.from_bytes(digest.digest(), "big")


LINKED = _digest_linking()
"""Digest of the built-in rows and of how they are linked, which compiled loops carry with them."""
