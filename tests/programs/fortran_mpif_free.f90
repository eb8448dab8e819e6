! Free-form Fortran with mpif.h.
!
! RUN np=2
! EXPECT late_sender at=@recv ranks=1 severity=0.300 instances=5 operation=MPI_Recv function=exchange
!   cause_rank=0 cause_line=@send
! EXPECT late_sender at=@wait ranks=1 severity=0.180 instances=3 operation=MPI_Wait
!   cause_rank=0 cause_line=@isend
! EXPECT wait_at_barrier at=@barrier ranks=1 severity=0.300 operation=MPI_Barrier
!   cause_rank=0 cause_line=@barrier
! METRIC late_sender 0.480
! SILENT late_receiver
program fortran_mpif_free
  implicit none
  include 'mpif.h'
  integer :: rank, round, total
  integer :: ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  total = 0
  do round = 1, 5
    call exchange(MPI_COMM_WORLD, round)
  end do
  do round = 1, 3
    call exchange_nonblocking(round)
  end do
  do round = 1, 5
    if (rank == 0) call delay(60)
    call MPI_Barrier(MPI_COMM_WORLD, ierror) ! MARK barrier
  end do
  write (*, '(a,i2,a,i6)') 'rank', rank, ' checksum', total
  call MPI_Finalize(ierror)

contains

  ! Rank 0 sends after a delay, rank 1 receives at once.
  subroutine exchange(comm, round)
    integer, intent(in) :: comm
    integer, intent(in) :: round
    integer :: status(MPI_STATUS_SIZE)
    integer :: value
    integer :: ierror

    call MPI_Barrier(comm, ierror)
    if (rank == 0) then
      call delay(60)
      value = 3 * round
      call MPI_Send(value, 1, MPI_INTEGER, 1, 4, comm, ierror) ! MARK send
    else
      value = -1
      call MPI_Recv(value, 1, MPI_INTEGER, 0, 4, comm, status, ierror) ! MARK recv
      if (value /= 3 * round .or. status(MPI_SOURCE) /= 0) call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
      total = total + value
    end if
  end subroutine exchange

  subroutine exchange_nonblocking(round)
    integer, intent(in) :: round
    integer :: ierror

    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank == 0) then
      call delay(60)
      call start_sending(5 * round)
    else
      total = total + awaited(5 * round)
    end if
  end subroutine exchange_nonblocking

  subroutine start_sending(message)
    integer, intent(in) :: message
    integer :: requests(1)
    integer, asynchronous :: value
    integer :: ierror

    value = message
    call MPI_Isend(value, 1, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, requests(1), ierror) ! MARK isend
    call MPI_Waitall(1, requests, MPI_STATUSES_IGNORE, ierror)
  end subroutine start_sending

  integer function awaited(expected)
    integer, intent(in) :: expected
    integer :: request
    integer, asynchronous :: value
    integer :: ierror

    value = -1
    call MPI_Irecv(value, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror) ! MARK wait
    if (value /= expected) call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
    awaited = value
  end function awaited

  subroutine delay(milliseconds)
    use, intrinsic :: iso_c_binding, only: c_int
    integer, intent(in) :: milliseconds
    integer(c_int) :: ignored
    character(len=16) :: text
    integer :: status
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
end program fortran_mpif_free
