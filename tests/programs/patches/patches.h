/* Shared by the three versions of a program that filters a radar image patch by patch, as in the
 * case study of tests/CASE_STUDY.md: PE 0 is the master, which alone reads patches of the raw image
 * and writes those of the result.
 *
 * The filter and the files are real but small. What they would take on real images is slept, so
 * that four PEs compute at the same time on a machine of two cores. How long depends on the
 * patch, since the filter varies over the image.
 */
#ifndef LAGGARD_TEST_PATCHES_H
#define LAGGARD_TEST_PATCHES_H

#include "../common.h"
#include <shmem.h>

enum {
    PATCHES = 48,
    SIDE = 32,
    CELLS = SIDE * SIDE,
    READ_US = 5000,
    WRITE_US = 2500,
    FILTER_US = 18000, /* and up to three VARIATION_US more, six milliseconds on average */
    VARIATION_US = 4000,
};

typedef struct {
    int cells[CELLS];
} patch;

/* Patches that a PE has at a time: one to work on, and on the master one that it has worked on. */
enum { AHEAD = 2, PES = 64 };

static patch in[AHEAD], out[PES][AHEAD];
static FILE *raw, *image;
static long checksum;

HELPER void stand_for(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&t, &t) != 0) {
    }
}

/* Makes the raw image, on the master. */
HELPER void open_files(void)
{
    raw = tmpfile();
    image = tmpfile();
    REQUIRE(raw != NULL && image != NULL);
    for (int number = 0; number < PATCHES; number++) {
        patch p;
        for (int i = 0; i < CELLS; i++)
            p.cells[i] = (number * 31 + i * 17) % 256;
        REQUIRE(fwrite(&p, sizeof p, 1, raw) == 1);
    }
}

HELPER void read_patch(int number, patch *p)
{
    REQUIRE(fseek(raw, (long)sizeof *p * number, SEEK_SET) == 0);
    REQUIRE(fread(p, sizeof *p, 1, raw) == 1);
    stand_for(READ_US);
}

HELPER void write_patch(int number, const patch *p)
{
    REQUIRE(fseek(image, (long)sizeof *p * number, SEEK_SET) == 0);
    REQUIRE(fwrite(p, sizeof *p, 1, image) == 1);
    for (int i = 0; i < CELLS; i++)
        checksum += (long)p->cells[i] * (number + i % 7);
    stand_for(WRITE_US);
}

/* Filters along the range, then along the azimuth. */
HELPER void filter(int number, const patch *from, patch *to)
{
    patch ranged;
    for (int i = 0; i < CELLS; i++) {
        int before = i % SIDE > 0 ? from->cells[i - 1] : 0;
        int after = i % SIDE < SIDE - 1 ? from->cells[i + 1] : 0;
        ranged.cells[i] = before + 2 * from->cells[i] + after;
    }
    for (int i = 0; i < CELLS; i++) {
        int above = i >= SIDE ? ranged.cells[i - SIDE] : 0;
        int below = i < CELLS - SIDE ? ranged.cells[i + SIDE] : 0;
        to->cells[i] = above + 2 * ranged.cells[i] + below;
    }
    stand_for(FILTER_US + VARIATION_US * ((number * 7 + number / 4) % 4));
}

/* The master gives a PE its patch of a round. */
HELPER void give(int number, int round, int pe)
{
    patch next;
    read_patch(number, &next);
    shmem_int_put(in[round % AHEAD].cells, next.cells, CELLS, pe);
}

/* A PE filters its patch of a round, and sends it to the master. */
HELPER void process(int number, int round)
{
    patch done;
    filter(number, &in[round % AHEAD], &done);
    shmem_int_put(out[rank][round % AHEAD].cells, done.cells, CELLS, 0);
}

HELPER void start_patches(void)
{
    shmem_init();
    rank = shmem_my_pe();
    size = shmem_n_pes();
    REQUIRE(size <= PES);
    if (rank == 0)
        open_files();
    shmem_barrier_all();
}

HELPER void finish_patches(void)
{
    if (rank == 0)
        result(checksum);
    shmem_finalize();
}

#endif
