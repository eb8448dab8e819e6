! As off_processor.c: rank 0 sleeps, or touches new memory.
module system
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function usleep(us) bind(c)
      import :: c_int
      integer(c_int), value :: us
    end function
    integer(c_int) function getrusage(who, usage) bind(c)
      import :: c_int, c_long
      integer(c_int), value :: who
      integer(c_long) :: usage(*)
    end function
  end interface
contains
  ! Of this thread: in the kernel and on a processor, s, and page faults.
  function spent() result(all)
    integer(c_int), parameter :: rusage_thread = 1
    integer(c_long) :: usage(18)
    real(8) :: all(3)
    if (getrusage(rusage_thread, usage) /= 0) error stop
    all = [usage(3) + 1d-6 * usage(4), sum(usage(1:3:2)) + 1d-6 * sum(usage(2:4:2)), real(usage(9), 8)]
  end function

  real(8) function wall()
    integer(8) :: ticks, rate
    call system_clock(ticks, rate)
    wall = real(ticks, 8) / rate
  end function
end module

program off_processor
  use mpi
  use system
  implicit none
  integer, parameter :: rounds = 20
  real(8), parameter :: part = 20d-3
  character(len=8) :: what
  character, allocatable :: bytes(:)
  integer :: error, rank, turn, value = 0
  real(8) :: begin, before(3), used(3), took, all(3) = 0, slept = 0, off = 0
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call get_command_argument(1, what)
  do turn = 1, rounds
    call MPI_Barrier(MPI_COMM_WORLD, error) ! MARK begin
    if (rank == 0) then
      before = spent()
      begin = wall()
      if (what == 'sleep') then
        error = usleep(int(1d6 * part, c_int))
        slept = slept + wall() - begin
      else
        used = before
        do while (used(2) < before(2) + part)
          ! So much is new from the kernel each time.
          allocate (bytes(40 * 1024**2), source='x')
          deallocate (bytes)
          used = spent()
        end do
      end if
      took = wall() - begin
      used = spent() - before
      all = all + used
      off = off + took - used(2)
      call MPI_Send(value, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, error) ! MARK end
    else
      call MPI_Recv(value, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    end if
  end do
  if (rank == 0) write (*, '(a, 5(a, i0), a)') '{', '"slept": ', nint(1d9 * slept, 8), ', "worked": ', &
    nint(1d9 * all(2), 8), ', "off": ', nint(1d9 * off, 8), ', "kernel": ', nint(1d9 * all(1), 8), &
    ', "faults": ', nint(all(3), 8), '}'
  call MPI_Finalize(error)
end program
