export { Client } from "@colyseus/sdk"
