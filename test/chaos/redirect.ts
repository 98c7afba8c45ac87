/**
 * Preloaded into a runner: sends its connections to another runner through the proxy of that pair, so
 * that a test can partition any two. `CHAOS_ROUTES` is JSON: the proxy's port by the runner's.
 */
import { Socket } from "node:net"
import { Schema } from "effect"

const Routes = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Int))
const routes = Schema.decodeSync(Routes)(process.env["CHAOS_ROUTES"] ?? "{}")
const connect = Socket.prototype.connect

/** `connect(options)`, or with its arguments as a list, which is how node calls it itself. */
const redirect = (first: unknown): void => {
  const options: unknown = Array.isArray(first) ? first[0] : first
  if (typeof options !== "object" || options === null) return
  const proxy = routes[String(Reflect.get(options, "port"))]
  if (proxy !== undefined) Reflect.set(options, "port", proxy)
}

Socket.prototype.connect = function (this: Socket, ...args: Array<unknown>) {
  redirect(args[0])
  return Reflect.apply(connect, this, args)
}
