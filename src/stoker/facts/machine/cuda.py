"""Asks the CUDA driver itself what it sees. It takes a moment, so only a measurement asks; no memory is taken."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

LIBRARY = "libcuda.so.1"
INTEGRATED = 18  # CU_DEVICE_ATTRIBUTE_INTEGRATED of cuda.h: the GPU uses the processor's memory


class CudaMemory(NamedTuple):
    """What CUDA calls the first GPU's memory, and whether that is the processor's."""

    total_bytes: int
    unified: bool | None


def read_cuda_memory(library: str = LIBRARY) -> CudaMemory | None:
    """Returns what CUDA sees of the first GPU; None without a driver, a GPU, or an answer."""
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        return None
    device, total, integrated = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_int()
    try:
        if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
            return None
        if cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device):
            return None
        failed = cuda.cuDeviceGetAttribute(ctypes.byref(integrated), INTEGRATED, device)
    except AttributeError:  # a library of that name that is not CUDA's
        return None
    return CudaMemory(total.value, None if failed else bool(integrated.value))
