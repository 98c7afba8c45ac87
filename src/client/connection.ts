/**
 * The one socket of a client to `/v1/realtime`: opened when it is first needed, held open until
 * `close`, and opened again as the close codes tell (spec sections 4.4 and 6, decisions 3.6). Calls
 * made meanwhile wait, bounded in number and time. What the frames mean is not decided here.
 */
import { Clock, Deferred, Effect, Fiber, Random, Result } from "effect"
import { sessions, socket as limits } from "#rpc/limits"
import { AuthFrame, closeCodes, ping, type Warn, type Welcome } from "#rpc/realtime"
