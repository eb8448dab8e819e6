//! Call paths by cached unwinding, cheap enough for every call
