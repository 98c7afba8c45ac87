/**
 * Every server that the fan-out benchmark knows, in the order in which they alternate. The capacity of
 * the first one sets the loads.
 */
import { bun } from "./bun.ts"
import { colyseus } from "./colyseus.ts"
import { echo } from "./echo.ts"
import { limit } from "./limit.ts"
import { naive } from "./naive.ts"
import { ours, oursTwo, oursTwoTls } from "./ours.ts"
import type { Peer } from "./peer.ts"
import { socketIo } from "./socket-io.ts"

export const peers: ReadonlyArray<Peer> = [
  naive,
  ours,
  oursTwo,
  oursTwoTls,
  colyseus,
  socketIo,
  bun,
  limit,
  echo
]
