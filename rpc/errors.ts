/** Every error code of the interface, once (spec section 7): the one door to `./errors/`. */
export * from "./errors/callers.ts"
export * from "./errors/channels.ts"
export * from "./errors/config.ts"
export * from "./errors/moderation.ts"
export * from "./errors/modules.ts"
export * from "./errors/realtime.ts"
export * from "./errors/requests.ts"
export { toWire, wire, type CodedError, type WireError } from "./errors/wire.ts"
