/** Memory and handles of a runner process, and the slope of a measurement over time. */
import { once } from "node:events"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Schema } from "effect"

/** The Unix socket of the reporter in a process. */
export const statsPath = (pid: number): string => join(tmpdir(), `process-stats-${pid}.sock`)

const ProcessStats = Schema.Struct({
  /** Bytes of live data, on and off the heap, after full garbage collections. */
  data: Schema.Number,
  /** Bytes of compiled code. */
  code: Schema.Number,
  rss: Schema.Number,
  /** Sockets, timers and files. */
  handles: Schema.Number
})

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(ProcessStats))

/** Measures a process that preloaded the reporter. */
export const processStats = async (pid: number): Promise<typeof ProcessStats.Type> => {
  const socket = connect(statsPath(pid))
  let reply = ""
  socket.on("data", (chunk: Buffer) => (reply += chunk.toString()))
  await once(socket, "end")
  return decode(reply)
}

/** A measured value and its time in hours. */
export interface Point {
  readonly hours: number
  readonly value: number
}

/** Growth per hour by least squares, with its standard error. */
export interface Slope {
  readonly hourly: number
  readonly error: number
}

/** The mean time and value of points. */
export const meanOf = (points: ReadonlyArray<Point>): Point => ({
  hours: points.reduce((sum, point) => sum + point.hours, 0) / points.length,
  value: points.reduce((sum, point) => sum + point.value, 0) / points.length
})

export const slopeOf = (points: ReadonlyArray<Point>): Slope => {
  const count = points.length
  const { hours, value } = meanOf(points)
  const spread = points.reduce((sum, point) => sum + (point.hours - hours) ** 2, 0)
  const hourly =
    points.reduce((sum, point) => sum + (point.hours - hours) * (point.value - value), 0) / spread
  const residual = points.reduce(
    (sum, point) => sum + (point.value - value - hourly * (point.hours - hours)) ** 2,
    0
  )
  return { hourly, error: Math.sqrt(residual / Math.max(1, count - 2) / spread) }
}
