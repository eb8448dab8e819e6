! A chain in Fortran: rank 0 makes all others wait, and those between only pass it on.
!
! RUN np=4
! ROOT computation at=@first ranks=0:0.900
! NO_ROOT ranks=1,2,3
! METRIC late_sender 0.900
program root_cause_fortran
  use mpi_f08
  implicit none
  integer :: rank, ranks, round, value, total

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  total = 0
  do round = 1, 5
    call MPI_Barrier(MPI_COMM_WORLD)
    value = round
    if (rank == 0) then
      call delay(60)
      call MPI_Send(value, 1, MPI_INTEGER, 1, 4, MPI_COMM_WORLD) ! MARK first
    else
      value = -1
      call MPI_Recv(value, 1, MPI_INTEGER, rank - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      if (rank < ranks - 1) call MPI_Send(value, 1, MPI_INTEGER, rank + 1, 4, MPI_COMM_WORLD)
    end if
    if (value /= round) call MPI_Abort(MPI_COMM_WORLD, 3)
    total = total + value
  end do
  call MPI_Barrier(MPI_COMM_WORLD)
  write (*, '(a,i2,a,i6)') 'rank', rank, ' checksum', total
  call MPI_Finalize()

contains

  subroutine delay(milliseconds)
    use, intrinsic :: iso_c_binding, only: c_int
    integer, intent(in) :: milliseconds
    character(len=16) :: text
    integer :: status
    integer(c_int) :: ignored
    real :: scale
    interface
      integer(c_int) function usleep(us) bind(c, name='usleep')
        import :: c_int
        integer(c_int), value :: us
      end function usleep
    end interface
    ! As in common.h.
    scale = 1
    call get_environment_variable('SCHEDULE_SCALE', text, status=status)
    if (status == 0) read (text, *) scale
    ignored = usleep(int(1000 * scale * milliseconds, c_int))
  end subroutine delay
end program root_cause_fortran
