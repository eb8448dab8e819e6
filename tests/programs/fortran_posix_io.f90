! What a Fortran program writes reaches the system through POSIX I/O: rank 0 writes into a full pipe,
! whose reader takes its time, and rank 1 waits for it.
!
! RUN np=2 cflags="-pthread" link="lib/full_pipe.c"
! ROOT io at=@flush ranks=0:0.300
! METRIC late_sender 0.300
program fortran_posix_io
    use, intrinsic :: iso_c_binding
    use mpi_f08
    implicit none
    interface
        integer(c_int) function full_pipe_start() bind(c)
            import :: c_int
        end function
        subroutine full_pipe_drains() bind(c)
        end subroutine
    end interface
    integer, parameter :: repeats = 5
    character(len=4096) :: block
    character(len=32) :: name
    integer :: rank, round, value, unit, total
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    block = ' '
    total = 0
    call MPI_Barrier(MPI_COMM_WORLD)
    write (name, '(a,i0)') '/dev/fd/', full_pipe_start()
    if (rank == 0) open (newunit=unit, file=name, access='stream', form='unformatted', action='write')
    do round = 0, repeats - 1
        value = round
        if (rank == 0) then
            call full_pipe_drains()
            write (unit) block
            flush (unit) ! MARK flush
            call MPI_Send(value, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD)
        else
            call MPI_Recv(value, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        end if
        total = total + value
    end do
    if (rank == 0) close (unit)
    print '(a,i0,a,i0)', 'rank ', rank, ' total ', total
    call MPI_Finalize()
end program
