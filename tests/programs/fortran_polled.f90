! Looking for a message in Fortran, with sleep between looks: by a request, and by a probe.
!
! RUN np=2
! EXPECT late_sender_polled at=@test ranks=1:0.180 severity=0.180 instances=3 operation=MPI_Test
!   cause_rank=0 cause_line=@send
! EXPECT late_sender_polled at=@probe ranks=1:0.180 severity=0.180 instances=3 operation=MPI_Iprobe
!   cause_rank=0 cause_line=@send
! METRIC late_sender_polled 0.360
! SILENT late_sender
program fortran_polled
  use mpi_f08
  implicit none
  integer :: rank, round, total

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  total = 0
  do round = 1, 6
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank == 0) then
      call delay(60)
      call MPI_Send(round, 1, MPI_INTEGER, 1, 4, MPI_COMM_WORLD) ! MARK send
    else
      call look()
    end if
  end do
  call MPI_Barrier(MPI_COMM_WORLD)
  write (*, '(a,i2,a,i6)') 'rank', rank, ' checksum', total
  call MPI_Finalize()

contains

  subroutine look()
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    logical :: found
    integer :: value

    value = -1
    if (round <= 3) then
      call MPI_Irecv(value, 1, MPI_INTEGER, 0, 4, MPI_COMM_WORLD, request)
      found = .false.
      ! In one line: the compiler is not sure which statement the call belongs to.
      do while (.not. found); call pass_us(1000); call MPI_Test(request, found, status); end do ! MARK test
    else
      do
        call MPI_Iprobe(0, 4, MPI_COMM_WORLD, found, status) ! MARK probe
        if (found) exit
        call pass_us(1000)
      end do
      call MPI_Recv(value, 1, MPI_INTEGER, 0, 4, MPI_COMM_WORLD, status)
    end if
    if (value /= round) call MPI_Abort(MPI_COMM_WORLD, 3)
    total = total + value
  end subroutine look

  subroutine delay(milliseconds)
    integer, intent(in) :: milliseconds
    character(len=16) :: text
    integer :: status
    real :: scale
    ! As in common.h.
    scale = 1
    call get_environment_variable('SCHEDULE_SCALE', text, status=status)
    if (status == 0) read (text, *) scale
    call pass_us(int(1000 * scale * milliseconds))
  end subroutine delay

  subroutine pass_us(microseconds)
    use, intrinsic :: iso_c_binding, only: c_int
    integer, intent(in) :: microseconds
    integer(c_int) :: ignored
    interface
      integer(c_int) function usleep(us) bind(c, name='usleep')
        import :: c_int
        integer(c_int), value :: us
      end function usleep
    end interface
    ignored = usleep(int(microseconds, c_int))
  end subroutine pass_us
end program fortran_polled
