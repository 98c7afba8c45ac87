/**
 * Test support (package export `./testing`): compose the service into your own tests. `TestApp` is the
 * whole service in your process on a database of its own; `startCluster` runs it as several processes
 * that a test can stop and kill; players and their scripted sockets speak to either.
 */
export { TestApp, TestDatabase } from "./app.ts"
export { cloneDatabase, testServer } from "./database.ts"
export {
  type Answer,
  at,
  authenticate,
  configure,
  goOnline,
  guest,
  newPlayer,
  type OnlinePlayer,
  request,
  type TestPlayer,
  type TestTarget
} from "./players.ts"
export { type Runner, RunnerError, startCluster, startRunner } from "./runners.ts"
export { type Closed, connectSocket, type HeardFrame, type SocketClient } from "./socket-client.ts"
