/**
 * What the benchmark needs of a server: start it in a process of its own, and know how its players
 * join a room, send and recognise deliveries. Both halves stand in one file per server; the first
 * runs in the benchmark's process, `joinRoom` in the load generator's.
 */
import type { Target } from "../wire/protocol.ts"
import type { SocketEvents } from "../wire/socket.ts"
import type { RunningServer } from "../machine/process.ts"

export interface Player {
  /** Sends the `seq`th message, scheduled for `ts`, to everybody else in the room. */
  readonly send: (seq: number, ts: number) => void
}

export interface RoomPlan {
  readonly target: Target
  readonly name: string
  readonly size: number
  readonly onDelivery: (member: number, ts: number) => void
  readonly onLost: SocketEvents["onLost"]
}

export interface Peer {
  readonly name: string
  /** A message returns to its sender and reaches nobody else. */
  readonly echoes?: true
  /** Starts the server, on `core` alone if one is given, and resolves when it is ready. */
  readonly start: (core: number | undefined) => Promise<RunningServer>
  /** Seats `size` players in one room; player `i` reports its deliveries as member `i`. */
  readonly joinRoom: (plan: RoomPlan) => Promise<ReadonlyArray<Player>>
}
