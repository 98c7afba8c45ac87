/**
 * Test kit (package export `./testing`) for your own tests. `TestApp` runs the whole service in your
 * process on its own database. `startCluster` runs it as several processes that a test can stop and
 * kill. Players and scripted sockets work with both.
 */
export { TestApp, TestDatabase } from "./app.ts"
export { effectTimers, makeClient } from "./client.ts"
export { type Bot, BotError, runBots } from "./bots.ts"
export { cloneDatabase, testServer } from "./database.ts"
export {
  at,
  authenticate,
  configure,
  goOnline,
  guest,
  newPlayer,
  type OnlinePlayer,
  request,
  type TestPlayer,
  type TestResponse,
  type TestTarget
} from "./players.ts"
export { type Runner, RunnerError, startCluster, startRunner } from "./runners.ts"
export {
  type Closed,
  connectSocket,
  type ReceivedFrame,
  type SocketClient
} from "./socket-client.ts"
