/* A library that makes the file system one that gives up growing a file when a signal arrives, of
 * a program whose timer leaves time for 16 KiB. */
#include <errno.h>
#include <fcntl.h>

int posix_fallocate(int fd, off_t offset, off_t length)
{
    if (length > 16 * 1024)
        return EINTR;
    return fallocate(fd, 0, offset, length) == 0 ? 0 : errno;
}
