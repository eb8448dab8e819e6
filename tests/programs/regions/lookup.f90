! Threads that begin and end a region for the first time at once: each finds the collector.
program lookup
  use omp_lib
  use laggard
  implicit none
  integer :: n
  !$omp parallel num_threads(8) private(n)
  !$omp barrier
  do n = 1, 3
    call laggard_region_begin('meet')
    call laggard_region_end('meet')
  end do
  !$omp end parallel
end program
