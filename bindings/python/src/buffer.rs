//! Bytes of Python's objects, by the buffer protocol and without a copy.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Calls `act` with the bytes of an object. Another thread may change the bytes of a bytearray or
/// an array at that time, as with Python's own files; then either the old or the new ones are
/// taken.
pub fn with_bytes<T>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&[u8]) -> PyResult<T>,
) -> PyResult<T> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return act(bytes.as_bytes());
    }
    let buffer = PyUntypedBuffer::get(data)?;
    act(bytes_of(&buffer)?)
}

/// Returns the bytes of a buffer, whatever its elements are.
fn bytes_of(buffer: &PyUntypedBuffer) -> PyResult<&[u8]> {
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("the bytes do not lie in a row: copy them first"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the buffer is exported while `buffer` lives, and its bytes lie in a row.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) })
}

/// Calls `act` with the bytes of several objects.
pub fn with_all_bytes<T>(
    items: &Bound<'_, PyAny>,
    act: impl FnOnce(&[&[u8]]) -> PyResult<T>,
) -> PyResult<T> {
    let buffers = items.try_iter()?.map(|item| PyUntypedBuffer::get(&item?));
    let buffers = buffers.collect::<PyResult<Vec<_>>>()?;
    act(&buffers.iter().map(bytes_of).collect::<PyResult<Vec<_>>>()?)
}

/// Calls `act` with the memory of a buffer that may be written.
pub fn with_room<T>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&mut [u8]) -> PyResult<T>,
) -> PyResult<T> {
    let buffer = PyUntypedBuffer::get(data)?;
    if buffer.readonly() || !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("a buffer that may be written, in a row, is needed"));
    }
    if buffer.len_bytes() == 0 {
        return act(&mut []);
    }
    // SAFETY: the buffer is exported while `buffer` lives, and its bytes lie in a row.
    let room = unsafe {
        std::slice::from_raw_parts_mut(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes())
    };
    act(room)
}
