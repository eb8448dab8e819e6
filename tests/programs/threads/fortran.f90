! Threads of a Fortran program: the second one is late at the end of a loop, and at a barrier; then it keeps
! a nest lock that the first one wants.
!
! Built with -fopenmp, run with two threads of one rank or more.
program threads
    use mpi
    use omp_lib
    implicit none
    integer, parameter :: rounds = 5
    integer :: provided, ierror, round, part
    integer :: parts(2), total
    integer(kind=omp_nest_lock_kind) :: nest
    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierror)
    call omp_init_nest_lock(nest)
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
        !$omp parallel private(part)
        part = omp_get_thread_num() + 1
        if (part == 2) then
            call omp_set_nest_lock(nest)
            call omp_set_nest_lock(nest)
        end if
        !$omp barrier
        if (part == 1) call omp_set_nest_lock(nest) ! MARK nest
        call work(part, 20)
        call omp_unset_nest_lock(nest)
        if (part == 2) call omp_unset_nest_lock(nest) ! MARK unnest
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
