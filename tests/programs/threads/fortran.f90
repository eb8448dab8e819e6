! Threads of a Fortran program: the second one is late at the end of a loop, and at a barrier.
!
! Built with -fopenmp, run with two threads of one rank or more.
program threads
    use mpi
    use omp_lib
    implicit none
    integer, parameter :: rounds = 5
    integer :: provided, ierror, round, part
    integer :: parts(2), total
    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierror)
    total = 0
    do round = 1, rounds
        parts = 0
        !$omp parallel do schedule(static, 1)
        do part = 1, 2
            call work(part, 20)
            parts(part) = part
        end do
        !$omp end parallel do
        !$omp parallel private(part)
        part = omp_get_thread_num() + 1
        call work(part, 10)
        !$omp barrier
        !$omp end parallel
        total = total + sum(parts)
    end do
    print '(a, i0)', 'total ', total
    call MPI_Finalize(ierror)
contains
    ! The second part takes `ms`, times the test's factor; the first one takes nothing.
    subroutine work(part, ms)
        integer, intent(in) :: part, ms
        character(len=16) :: text
        double precision :: until, scale
        integer :: length
        scale = 1
        call get_environment_variable('SCHEDULE_SCALE', text, length)
        if (length > 0) read (text, *) scale
        until = MPI_Wtime() + 1d-3 * scale * ms * (part - 1)
        do while (MPI_Wtime() < until)
        end do
    end subroutine work
end program threads
