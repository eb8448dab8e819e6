/* laggard.h: what a program may tell laggard of itself.
 *
 *     laggard_region_begin("solve");          a region: profiled, and a frame in call paths
 *     laggard_region_end("solve");
 *     laggard_wait_begin("spin", &flag);      a region that waits until somebody changes `flag`, in
 *     laggard_region_end("spin");             symmetric memory or in this process's memory of a
 *                                             window of MPI, see --operation-map
 *     laggard_phase("time loop");             a phase, which ends with the next one
 *     laggard_pause(); laggard_resume();      switch recording off and on
 *
 * Regions nest, and belong to the thread that begins them. Names are C strings of up to 255
 * bytes. Nothing has to be linked: the collector is looked up when a call is made first, and
 * where it is not there (LD_PRELOAD is not set) calls do nothing but evaluate their arguments.
 * C libraries before glibc 2.34 need -ldl. Compiled with -DLAGGARD_OFF, all of it is gone. For C
 * and C++.
 */
#ifndef LAGGARD_H
#define LAGGARD_H

#ifdef LAGGARD_OFF

#define laggard_region_begin(name) ((void)(name))
#define laggard_region_end(name) ((void)(name))
#define laggard_wait_begin(name, address) ((void)(name), (void)(address))
#define laggard_phase(name) ((void)(name))
#define laggard_pause() ((void)0)
#define laggard_resume() ((void)0)

#else

#include <dlfcn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*laggard_function_)(void);

/* The collector's function with this name; one that does nothing where it is not there. */
__attribute__((no_instrument_function, unused)) static void laggard_nothing_(void) {}
__attribute__((no_instrument_function, unused)) static laggard_function_
laggard_find_(laggard_function_ *known, const char *name) {
    laggard_function_ found = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (!found) {
        /* RTLD_DEFAULT, which the header hides without _GNU_SOURCE. */
        void *address = dlsym((void *)0, name);
        if (address)
            __builtin_memcpy(&found, &address, sizeof found);
        else
            found = laggard_nothing_;
        __atomic_store_n(known, found, __ATOMIC_RELAXED);
    }
    return found;
}

__attribute__((unused)) static laggard_function_ laggard_known_[4];

#ifdef __cplusplus
}
#endif

/* Macros, so that what is called from is the line of the program. Arguments are evaluated once,
 * whether the collector is there or not. */
#define LAGGARD_CALL_(at, name, type, arguments)                                                   \
    do {                                                                                           \
        laggard_function_ laggard_found_ =                                                         \
            laggard_find_(&laggard_known_[at], "laggard_collector_" name);                         \
        if (laggard_found_ != laggard_nothing_)                                                    \
            ((type)laggard_found_) arguments;                                                      \
    } while (0)
#define LAGGARD_NAMED_(at, function, name)                                                         \
    do {                                                                                           \
        const char *laggard_name_ = (name);                                                        \
        LAGGARD_CALL_(at, function, void (*)(const char *), (laggard_name_));                      \
    } while (0)

#define laggard_wait_begin(name, address)                                                          \
    do {                                                                                           \
        const char *laggard_name_ = (name);                                                        \
        const volatile void *laggard_address_ = (address);                                         \
        LAGGARD_CALL_(0, "region_begin", void (*)(const char *, const volatile void *),            \
                      (laggard_name_, laggard_address_));                                          \
    } while (0)
#define laggard_region_begin(name) laggard_wait_begin(name, (const volatile void *)0)
#define laggard_region_end(name) LAGGARD_NAMED_(1, "region_end", name)
#define laggard_phase(name) LAGGARD_NAMED_(2, "phase", name)
#define laggard_pause() LAGGARD_CALL_(3, "pause", void (*)(int), (1))
#define laggard_resume() LAGGARD_CALL_(3, "pause", void (*)(int), (0))

#endif
#endif
