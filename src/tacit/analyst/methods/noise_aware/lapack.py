"""Matrices by their shapes, in LAPACK and without the interpreter's lock.

SciPy's own wrappers hold the lock while they compute, so that threads wait for each other. The same
routines are called here through the pointers that SciPy keeps for compiled code. Matrices are
float64 in Fortran's order; a lower triangle is read, and what is above it is not looked at.
"""

import ctypes
from collections.abc import Callable
from types import ModuleType

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

Array = NDArray[np.float64]
Argument = Array | ctypes.c_char | ctypes.c_int | ctypes.c_double

_LOWER = ctypes.c_char(b"L")
_LEFT = ctypes.c_char(b"L")
_NO = ctypes.c_char(b"N")
_TRANSPOSED = ctypes.c_char(b"T")


def _routine(module: ModuleType, name: str) -> Callable[..., None]:
    """A routine that takes the addresses of its arguments."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype = ctypes.c_char_p
    name_of.argtypes = [ctypes.py_object]
    address_of = ctypes.pythonapi.PyCapsule_GetPointer
    address_of.restype = ctypes.c_void_p
    address_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = module.__pyx_capi__[name]
    signature = name_of(capsule)
    arguments = [ctypes.c_void_p] * (signature.count(b",") + 1)
    address = address_of(capsule, signature)
    routine: Callable[..., None] = ctypes.CFUNCTYPE(None, *arguments)(address)
    return routine


_POTRF = _routine(cython_lapack, "dpotrf")
_TRTRI = _routine(cython_lapack, "dtrtri")
_LAUUM = _routine(cython_lapack, "dlauum")
_SYRK = _routine(cython_blas, "dsyrk")
_TRMM = _routine(cython_blas, "dtrmm")
_TRSM = _routine(cython_blas, "dtrsm")


def _call(routine: Callable[..., None], *arguments: Argument) -> None:
    routine(
        *(
            one.ctypes.data if isinstance(one, np.ndarray) else ctypes.addressof(one)
            for one in arguments
        )
    )


def _whole(number: int) -> ctypes.c_int:
    return ctypes.c_int(number)


def _ready(matrix: Array) -> Array:
    """A copy in Fortran's order, to work in."""
    return np.array(matrix, dtype=float, order="F")


def root_of(covariance: Array) -> Array:
    """L, lower triangular with zeros above, in the place of a symmetric matrix."""
    d = len(covariance)
    failed = _whole(0)
    _call(_POTRF, _LOWER, _whole(d), covariance, _whole(d), failed)
    if failed.value:
        raise np.linalg.LinAlgError("a covariance is not positive definite")
    for column in range(1, d):
        covariance[:column, column] = 0.0
    return covariance


def inverse_root(root: Array) -> Array:
    """L⁻¹, in the place of L."""
    size = _whole(len(root))
    _call(_TRTRI, _LOWER, _NO, size, root, size, _whole(0))
    return root


def squared(white: Array) -> Array:
    """L⁻¹'L⁻¹, its lower triangle."""
    product = white.copy(order="F")
    size = _whole(len(white))
    _call(_LAUUM, _LOWER, size, product, size, _whole(0))
    return product


def gram(matrix: Array, total: Array | None = None) -> Array:
    """M'M, its lower triangle, or added to that of `total`, in its place."""
    rows, columns = matrix.shape
    add = ctypes.c_double(0.0 if total is None else 1.0)
    product = np.zeros((columns, columns), order="F") if total is None else total
    sizes = (_whole(columns), _whole(rows), ctypes.c_double(1.0))
    wide = _whole(columns)
    _call(_SYRK, _LOWER, _TRANSPOSED, *sizes, matrix, _whole(rows), add, product, wide)
    return product


def times(triangle: Array, matrix: Array, *, transposed: bool = False) -> Array:
    """LM or L'M."""
    return _triangular(_TRMM, triangle, matrix, _TRANSPOSED if transposed else _NO)


def solved(triangle: Array, matrix: Array, *, transposed: bool = False) -> Array:
    """L⁻¹M or L⁻¹'M."""
    return _triangular(_TRSM, triangle, matrix, _TRANSPOSED if transposed else _NO)


def _triangular(
    routine: Callable[..., None], triangle: Array, matrix: Array, turn: ctypes.c_char
) -> Array:
    product = _ready(matrix)
    rows, columns = product.shape
    form = (_LEFT, _LOWER, turn, _NO, _whole(rows), _whole(columns), ctypes.c_double(1.0))
    _call(routine, *form, triangle, _whole(len(triangle)), product, _whole(rows))
    return product
