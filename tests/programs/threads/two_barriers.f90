! Three threads of a team meet at two barriers of a region: the second one is late at the first barrier, the third one at the
! other.
!
! Built with -fopenmp, run with three threads of one rank or more.
program barriers
    use mpi
    use omp_lib
    implicit none
    integer, parameter :: rounds = 5
    integer :: provided, ierror, round, total
    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierror)
    total = 0
    do round = 1, rounds
        call phases(total)
    end do
    print '(a, i0)', 'total ', total
    call MPI_Finalize(ierror)
contains
    subroutine phases(total)
        integer, intent(inout) :: total
        integer :: thread
        !$omp parallel private(thread) reduction(+ : total)
        thread = omp_get_thread_num()
        if (thread == 1) call work(30)
        !$omp barrier ! MARK first
        if (thread == 2) call work(20)
        !$omp barrier ! MARK second
        total = total + thread
        !$omp end parallel
    end subroutine phases

    ! Takes so many ms, times the test's factor.
    subroutine work(ms)
        integer, intent(in) :: ms
        character(len=16) :: text
        double precision :: until, scale
        integer :: length
        scale = 1
        call get_environment_variable('SCHEDULE_SCALE', text, length)
        if (length > 0) read (text, *) scale
        until = MPI_Wtime() + 1d-3 * scale * ms
        do while (MPI_Wtime() < until)
        end do
    end subroutine work
end program barriers
