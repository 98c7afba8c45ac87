/** Limits of HTTP that many features share. Those of one feature are in its own files. */
import { KiB, secondsPerDay } from "./units.ts"

export const http = {
  /** The largest body of an endpoint that declares no other `BodyMaxBytes`. */
  bodyMaxBytes: 16 * KiB,
  /** A client that sends or reads more slowly than this loses its connection after a while. */
  slowestBytesPerSecond: 16 * KiB,
  pageDefault: 50,
  pageMax: 100,
  corsMaxAgeSeconds: secondsPerDay
} as const
