//! The OTF2 library, loaded on demand: nothing else needs it, to build or to run.
//!
//! This file declares the functions used, as in `otf2/OTF2_Reader.h` and related headers since
//! version 2.0. Handles are untyped: they never leave this crate.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

use libloading::Library;

use crate::Error;

/// `OTF2_ErrorCode`, `OTF2_CallbackCode`.
pub type Code = c_int;
/// Success, in both.
pub const SUCCESS: Code = 0;
/// A pointer to one of the library's objects.
pub type Handle = *mut c_void;
/// A function that the library calls, of any type.
pub type Callback = *const c_void;

/// File names of the library in distributions, the newest first.
pub const LIBRARY_NAMES: [&str; 6] = [
    "libotf2.so.10",
    "libopen-trace-format2.so.10",
    "libotf2.so.9",
    "libotf2.so.8",
    "libotf2.so.7",
    "libotf2.so",
];

macro_rules! functions {
    ($table:ident: $($name:ident = $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// Functions of the library.
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $table {
            pub fn of(library: &Library) -> Result<$table, &'static str> {
                // SAFETY: the types are those of the library's headers.
                unsafe {
                    Ok($table {
                        $($name: *library.get($symbol.as_bytes()).map_err(|_| $symbol)?,)*
                    })
                }
            }
        }
    };
}

functions! { Functions:
    register_error_callback = "OTF2_Error_RegisterCallback"(Callback, Handle) -> Callback;
    error_description = "OTF2_Error_GetDescription"(Code) -> *const c_char;
    open = "OTF2_Reader_Open"(*const c_char) -> Handle;
    close = "OTF2_Reader_Close"(Handle) -> Code;
    set_serial = "OTF2_Reader_SetSerialCollectiveCallbacks"(Handle) -> Code;
    trace_id = "OTF2_Reader_GetTraceId"(Handle, *mut u64) -> Code;
    global_definitions = "OTF2_Reader_GetGlobalDefReader"(Handle) -> Handle;
    global_callbacks_new = "OTF2_GlobalDefReaderCallbacks_New"() -> Handle;
    global_callbacks_delete = "OTF2_GlobalDefReaderCallbacks_Delete"(Handle) -> ();
    global_callbacks_register = "OTF2_Reader_RegisterGlobalDefCallbacks"(Handle, Handle, Handle, Handle) -> Code;
    read_global_definitions = "OTF2_Reader_ReadAllGlobalDefinitions"(Handle, Handle, *mut u64) -> Code;
    close_global_definitions = "OTF2_Reader_CloseGlobalDefReader"(Handle, Handle) -> Code;
    select_location = "OTF2_Reader_SelectLocation"(Handle, u64) -> Code;
    open_definition_files = "OTF2_Reader_OpenDefFiles"(Handle) -> Code;
    close_definition_files = "OTF2_Reader_CloseDefFiles"(Handle) -> Code;
    local_definitions = "OTF2_Reader_GetDefReader"(Handle, u64) -> Handle;
    local_callbacks_new = "OTF2_DefReaderCallbacks_New"() -> Handle;
    local_callbacks_delete = "OTF2_DefReaderCallbacks_Delete"(Handle) -> ();
    local_callbacks_register = "OTF2_Reader_RegisterDefCallbacks"(Handle, Handle, Handle, Handle) -> Code;
    read_local_definitions = "OTF2_Reader_ReadAllLocalDefinitions"(Handle, Handle, *mut u64) -> Code;
    close_local_definitions = "OTF2_Reader_CloseDefReader"(Handle, Handle) -> Code;
    open_event_files = "OTF2_Reader_OpenEvtFiles"(Handle) -> Code;
    close_event_files = "OTF2_Reader_CloseEvtFiles"(Handle) -> Code;
    events = "OTF2_Reader_GetEvtReader"(Handle, u64) -> Handle;
    event_callbacks_new = "OTF2_EvtReaderCallbacks_New"() -> Handle;
    event_callbacks_delete = "OTF2_EvtReaderCallbacks_Delete"(Handle) -> ();
    event_callbacks_register = "OTF2_Reader_RegisterEvtCallbacks"(Handle, Handle, Handle, Handle) -> Code;
    apply_mapping = "OTF2_EvtReader_ApplyMappingTables"(Handle, bool) -> Code;
    apply_clock_offsets = "OTF2_EvtReader_ApplyClockOffsets"(Handle, bool) -> Code;
    read_events = "OTF2_Reader_ReadLocalEvents"(Handle, Handle, u64, *mut u64) -> Code;
    close_events = "OTF2_Reader_CloseEvtReader"(Handle, Handle) -> Code;
    attribute = "OTF2_AttributeList_GetUint8"(Handle, u32, *mut u8) -> Code;
    long_attribute = "OTF2_AttributeList_GetUint64"(Handle, u32, *mut u64) -> Code;
}

functions! { Writing:
    attributes_new = "OTF2_AttributeList_New"() -> Handle;
    attributes_delete = "OTF2_AttributeList_Delete"(Handle) -> Code;
    attributes_add = "OTF2_AttributeList_AddUint8"(Handle, u32, u8) -> Code;
    attributes_add_long = "OTF2_AttributeList_AddUint64"(Handle, u32, u64) -> Code;
    attribute = "OTF2_GlobalDefWriter_WriteAttribute"(Handle, u32, u32, u32, u8) -> Code;
    open = "OTF2_Archive_Open"(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Handle;
    close = "OTF2_Archive_Close"(Handle) -> Code;
    set_flush = "OTF2_Archive_SetFlushCallbacks"(Handle, *const Flush, Handle) -> Code;
    set_serial = "OTF2_Archive_SetSerialCollectiveCallbacks"(Handle) -> Code;
    set_creator = "OTF2_Archive_SetCreator"(Handle, *const c_char) -> Code;
    open_events = "OTF2_Archive_OpenEvtFiles"(Handle) -> Code;
    close_events = "OTF2_Archive_CloseEvtFiles"(Handle) -> Code;
    open_definitions = "OTF2_Archive_OpenDefFiles"(Handle) -> Code;
    close_definitions = "OTF2_Archive_CloseDefFiles"(Handle) -> Code;
    events = "OTF2_Archive_GetEvtWriter"(Handle, u64) -> Handle;
    close_event_writer = "OTF2_Archive_CloseEvtWriter"(Handle, Handle) -> Code;
    local_definitions = "OTF2_Archive_GetDefWriter"(Handle, u64) -> Handle;
    close_local_definitions = "OTF2_Archive_CloseDefWriter"(Handle, Handle) -> Code;
    global_definitions = "OTF2_Archive_GetGlobalDefWriter"(Handle) -> Handle;
    close_global_definitions = "OTF2_Archive_CloseGlobalDefWriter"(Handle, Handle) -> Code;
    markers = "OTF2_Archive_GetMarkerWriter"(Handle) -> Handle;
    close_markers = "OTF2_Archive_CloseMarkerWriter"(Handle, Handle) -> Code;
    marker_definition = "OTF2_MarkerWriter_WriteDefMarker"(Handle, u32, *const c_char, *const c_char, u8) -> Code;
    marker = "OTF2_MarkerWriter_WriteMarker"(Handle, u64, u64, u32, u8, u64, *const c_char) -> Code;
    clock = "OTF2_GlobalDefWriter_WriteClockProperties"(Handle, u64, u64, u64, u64) -> Code;
    string = "OTF2_GlobalDefWriter_WriteString"(Handle, u32, *const c_char) -> Code;
    node = "OTF2_GlobalDefWriter_WriteSystemTreeNode"(Handle, u32, u32, u32, u32) -> Code;
    process = "OTF2_GlobalDefWriter_WriteLocationGroup"(Handle, u32, u32, u8, u32, u32) -> Code;
    location = "OTF2_GlobalDefWriter_WriteLocation"(Handle, u64, u32, u8, u64, u32) -> Code;
    location_property = "OTF2_GlobalDefWriter_WriteLocationProperty"(Handle, u64, u32, u8, u64) -> Code;
    region = "OTF2_GlobalDefWriter_WriteRegion"(Handle, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> Code;
    group = "OTF2_GlobalDefWriter_WriteGroup"(Handle, u32, u32, u8, u8, u32, u32, *const u64) -> Code;
    comm = "OTF2_GlobalDefWriter_WriteComm"(Handle, u32, u32, u32, u32, u32) -> Code;
    inter_comm = "OTF2_GlobalDefWriter_WriteInterComm"(Handle, u32, u32, u32, u32, u32, u32) -> Code;
    dimension = "OTF2_GlobalDefWriter_WriteCartDimension"(Handle, u32, u32, u32, u8) -> Code;
    grid = "OTF2_GlobalDefWriter_WriteCartTopology"(Handle, u32, u32, u32, u8, *const u32) -> Code;
    coordinate = "OTF2_GlobalDefWriter_WriteCartCoordinate"(Handle, u32, u32, u8, *const u32) -> Code;
    window = "OTF2_GlobalDefWriter_WriteRmaWin"(Handle, u32, u32, u32, u32) -> Code;
    metric_member = "OTF2_GlobalDefWriter_WriteMetricMember"(Handle, u32, u32, u32, u8, u8, u8, u8, i64, u32) -> Code;
    metric_class = "OTF2_GlobalDefWriter_WriteMetricClass"(Handle, u32, u8, *const u32, u8, u8) -> Code;
    metric = "OTF2_EvtWriter_Metric"(Handle, Handle, u64, u32, u8, *const u8, *const u64) -> Code;
    enter = "OTF2_EvtWriter_Enter"(Handle, Handle, u64, u32) -> Code;
    leave = "OTF2_EvtWriter_Leave"(Handle, Handle, u64, u32) -> Code;
    send = "OTF2_EvtWriter_MpiSend"(Handle, Handle, u64, u32, u32, u32, u64) -> Code;
    isend = "OTF2_EvtWriter_MpiIsend"(Handle, Handle, u64, u32, u32, u32, u64, u64) -> Code;
    isend_complete = "OTF2_EvtWriter_MpiIsendComplete"(Handle, Handle, u64, u64) -> Code;
    irecv_request = "OTF2_EvtWriter_MpiIrecvRequest"(Handle, Handle, u64, u64) -> Code;
    receive = "OTF2_EvtWriter_MpiRecv"(Handle, Handle, u64, u32, u32, u32, u64) -> Code;
    ireceived = "OTF2_EvtWriter_MpiIrecv"(Handle, Handle, u64, u32, u32, u32, u64, u64) -> Code;
    request_test = "OTF2_EvtWriter_MpiRequestTest"(Handle, Handle, u64, u64) -> Code;
    cancelled = "OTF2_EvtWriter_MpiRequestCancelled"(Handle, Handle, u64, u64) -> Code;
    collective_begin = "OTF2_EvtWriter_MpiCollectiveBegin"(Handle, Handle, u64) -> Code;
    collective_end = "OTF2_EvtWriter_MpiCollectiveEnd"(Handle, Handle, u64, u8, u32, u32, u64, u64) -> Code;
    collective_request = "OTF2_EvtWriter_NonBlockingCollectiveRequest"(Handle, Handle, u64, u64) -> Code;
    collective_complete = "OTF2_EvtWriter_NonBlockingCollectiveComplete"(Handle, Handle, u64, u8, u32, u32, u64, u64, u64) -> Code;
    window_create = "OTF2_EvtWriter_RmaWinCreate"(Handle, Handle, u64, u32) -> Code;
    window_destroy = "OTF2_EvtWriter_RmaWinDestroy"(Handle, Handle, u64, u32) -> Code;
    window_begin = "OTF2_EvtWriter_RmaCollectiveBegin"(Handle, Handle, u64) -> Code;
    window_end = "OTF2_EvtWriter_RmaCollectiveEnd"(Handle, Handle, u64, u8, u32, u32, u32, u64, u64) -> Code;
    put = "OTF2_EvtWriter_RmaPut"(Handle, Handle, u64, u32, u32, u64, u64) -> Code;
    get = "OTF2_EvtWriter_RmaGet"(Handle, Handle, u64, u32, u32, u64, u64) -> Code;
    lock = "OTF2_EvtWriter_RmaAcquireLock"(Handle, Handle, u64, u32, u32, u64, u8) -> Code;
    unlock = "OTF2_EvtWriter_RmaReleaseLock"(Handle, Handle, u64, u32, u32, u64) -> Code;
    flush = "OTF2_EvtWriter_RmaSync"(Handle, Handle, u64, u32, u32, u32) -> Code;
    on_window = "OTF2_EvtWriter_RmaOpCompleteRemote"(Handle, Handle, u64, u32, u64) -> Code;
    transfer_complete = "OTF2_EvtWriter_RmaOpCompleteBlocking"(Handle, Handle, u64, u32, u64) -> Code;
    group_sync = "OTF2_EvtWriter_RmaGroupSync"(Handle, Handle, u64, u32, u32, u32) -> Code;
    enter_context = "OTF2_EvtWriter_CallingContextEnter"(Handle, Handle, u64, u32, u32) -> Code;
    leave_context = "OTF2_EvtWriter_CallingContextLeave"(Handle, Handle, u64, u32) -> Code;
    sample = "OTF2_EvtWriter_CallingContextSample"(Handle, Handle, u64, u32, u32, u32) -> Code;
    place = "OTF2_GlobalDefWriter_WriteSourceCodeLocation"(Handle, u32, u32, u32) -> Code;
    context = "OTF2_GlobalDefWriter_WriteCallingContext"(Handle, u32, u32, u32, u32) -> Code;
    generator = "OTF2_GlobalDefWriter_WriteInterruptGenerator"(Handle, u32, u32, u8, u8, i64, u64) -> Code;
    fork = "OTF2_EvtWriter_ThreadFork"(Handle, Handle, u64, u8, u32) -> Code;
    join = "OTF2_EvtWriter_ThreadJoin"(Handle, Handle, u64, u8) -> Code;
    team_begin = "OTF2_EvtWriter_ThreadTeamBegin"(Handle, Handle, u64, u32) -> Code;
    team_end = "OTF2_EvtWriter_ThreadTeamEnd"(Handle, Handle, u64, u32) -> Code;
    acquire = "OTF2_EvtWriter_ThreadAcquireLock"(Handle, Handle, u64, u8, u32, u32) -> Code;
    release = "OTF2_EvtWriter_ThreadReleaseLock"(Handle, Handle, u64, u8, u32, u32) -> Code;
    program_begin = "OTF2_EvtWriter_ProgramBegin"(Handle, Handle, u64, u32, u32, *const u32) -> Code;
    program_end = "OTF2_EvtWriter_ProgramEnd"(Handle, Handle, u64, i64) -> Code;
}

/// `OTF2_FlushCallbacks`: before, and after.
#[repr(C)]
pub struct Flush {
    /// Decides whether full buffers are written.
    pub before: unsafe extern "C" fn(Handle, u8, u64, Handle, bool) -> u8,
    /// Null.
    pub after: Callback,
}

/// The loaded library.
pub struct Otf2 {
    library: Library,
    /// Its functions.
    pub call: Functions,
}

/// Kinds of callback tables, as in the names of functions.
#[derive(Clone, Copy)]
pub enum Table {
    /// Global definitions.
    Global,
    /// Definitions of a location.
    Local,
    /// Events of a location.
    Events,
}

impl Otf2 {
    /// The library, for reading this archive; it stays loaded.
    pub fn load(path: &Path) -> Result<&'static Otf2, Error> {
        static LOADED: OnceLock<Result<Otf2, Option<&'static str>>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| {
            // SAFETY: loading runs the library's initialisers, as for any library.
            let mut found = LIBRARY_NAMES
                .iter()
                .filter_map(|name| unsafe { Library::new(name) }.ok());
            let library = found.next().ok_or(None)?;
            let call = Functions::of(&library).map_err(Some)?;
            // SAFETY: a static function of the type that it expects.
            unsafe { (call.register_error_callback)(silent as Callback, std::ptr::null_mut()) };
            Ok(Otf2 { library, call })
        });
        loaded.as_ref().map_err(|missing| match *missing {
            Some(function) => Error::OldLibrary { function },
            None => Error::NoLibrary {
                path: path.to_owned(),
            },
        })
    }

    /// The functions that write archives.
    pub fn writing(&self) -> Result<Writing, Error> {
        Writing::of(&self.library).map_err(|function| Error::OldLibrary { function })
    }

    /// Sets a callback in a table. An older library never calls one for a record it does not
    /// know.
    pub fn set(&self, table: Table, callbacks: Handle, record: &str, callback: Callback) {
        let family = match table {
            Table::Global => "GlobalDef",
            Table::Local => "Def",
            Table::Events => "Evt",
        };
        let symbol = format!("OTF2_{family}ReaderCallbacks_Set{record}Callback\0");
        // SAFETY: all functions of this name have this type, except for the type of the
        // callback.
        unsafe {
            let set = self
                .library
                .get::<unsafe extern "C" fn(Handle, Callback) -> Code>(symbol.as_bytes());
            if let Ok(set) = set {
                set(callbacks, callback);
            }
        }
    }

    /// The library's message for an error code.
    pub fn describe(&self, code: Code) -> String {
        // SAFETY: returns a constant text for any code.
        let text = unsafe { (self.call.error_description)(code) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: not null, so a text that ends with a zero.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        text.trim_end_matches('.').to_owned()
    }
}

/// Replaces the library's own handler, which prints: errors are returned and reported once,
/// here.
extern "C" fn silent(
    _: Handle,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    code: Code,
    _: *const c_char,
    _: Handle,
) -> Code {
    code
}
