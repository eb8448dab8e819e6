/* Reads all events of an OTF2 archive, location after location, and does nothing with
   them: what any reader of the archive has to pay. Prints how many there are.
   Arguments: the anchor file. */
#include <inttypes.h>
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>

/* Parameters of an event before and after those that tell it. */
#define HEAD OTF2_LocationRef l, OTF2_TimeStamp t, uint64_t n, void *u, OTF2_AttributeList *a
#define EMPTY(name, ...) \
    static OTF2_CallbackCode name(HEAD, ##__VA_ARGS__) { return OTF2_CALLBACK_SUCCESS; }

EMPTY(region, OTF2_RegionRef r)
EMPTY(message, uint32_t p, OTF2_CommRef c, uint32_t g, uint64_t b)
EMPTY(posted, uint32_t p, OTF2_CommRef c, uint32_t g, uint64_t b, uint64_t q)
EMPTY(request, uint64_t q)
EMPTY(begin)
EMPTY(end, OTF2_CollectiveOp o, OTF2_CommRef c, uint32_t r, uint64_t s, uint64_t b)
EMPTY(done, OTF2_CollectiveOp o, OTF2_CommRef c, uint32_t r, uint64_t s, uint64_t b, uint64_t q)

/* The locations that the global definitions tell of. */
static uint64_t *locations;
static size_t count;

static OTF2_CallbackCode location(void *u, OTF2_LocationRef id, OTF2_StringRef name,
                                  OTF2_LocationType type, uint64_t events,
                                  OTF2_LocationGroupRef group) {
    locations = realloc(locations, (count + 1) * sizeof *locations);
    if (!locations)
        abort();
    locations[count++] = id;
    return OTF2_CALLBACK_SUCCESS;
}

static void check(int fine, const char *what) {
    if (!fine) {
        fprintf(stderr, "otf2_read: cannot read %s\n", what);
        exit(1);
    }
}

static OTF2_EvtReaderCallbacks *callbacks(void) {
    OTF2_EvtReaderCallbacks *all = OTF2_EvtReaderCallbacks_New();
    OTF2_EvtReaderCallbacks_SetEnterCallback(all, region);
    OTF2_EvtReaderCallbacks_SetLeaveCallback(all, region);
    OTF2_EvtReaderCallbacks_SetMpiSendCallback(all, message);
    OTF2_EvtReaderCallbacks_SetMpiRecvCallback(all, message);
    OTF2_EvtReaderCallbacks_SetMpiIsendCallback(all, posted);
    OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(all, posted);
    OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(all, request);
    OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(all, request);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveBeginCallback(all, begin);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(all, end);
    OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(all, request);
    OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(all, done);
    return all;
}

int main(int argc, char **argv) {
    check(argc == 2, "anything: one anchor file, please");
    OTF2_Reader *reader = OTF2_Reader_Open(argv[1]);
    check(reader != NULL, argv[1]);
    OTF2_Reader_SetSerialCollectiveCallbacks(reader);
    OTF2_GlobalDefReader *definitions = OTF2_Reader_GetGlobalDefReader(reader);
    OTF2_GlobalDefReaderCallbacks *of_definitions = OTF2_GlobalDefReaderCallbacks_New();
    OTF2_GlobalDefReaderCallbacks_SetLocationCallback(of_definitions, location);
    OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, of_definitions, NULL);
    uint64_t read = 0, events = 0;
    check(OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &read) == OTF2_SUCCESS,
          "its definitions");
    for (size_t at = 0; at < count; at++)
        OTF2_Reader_SelectLocation(reader, locations[at]);
    check(OTF2_Reader_OpenEvtFiles(reader) == OTF2_SUCCESS, "its events");
    OTF2_EvtReaderCallbacks *of_events = callbacks();
    for (size_t at = 0; at < count; at++) {
        OTF2_EvtReader *one = OTF2_Reader_GetEvtReader(reader, locations[at]);
        check(one != NULL, "a location");
        OTF2_Reader_RegisterEvtCallbacks(reader, one, of_events, NULL);
        check(OTF2_Reader_ReadAllLocalEvents(reader, one, &read) == OTF2_SUCCESS, "a location");
        OTF2_Reader_CloseEvtReader(reader, one);
        events += read;
    }
    OTF2_Reader_CloseEvtFiles(reader);
    OTF2_Reader_Close(reader);
    printf("%" PRIu64 "\n", events);
    return 0;
}
