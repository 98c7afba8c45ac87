/** Session transfer, as the service composes it. */
import { TransferHttp } from "./handlers.ts"

export const transfer = { routes: TransferHttp }
