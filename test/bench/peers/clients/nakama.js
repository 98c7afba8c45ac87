export { Client } from "@heroiclabs/nakama-js"
