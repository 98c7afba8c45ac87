/** System, as the service composes it. */
import { SystemHttp } from "./handlers.ts"

export const system = { routes: SystemHttp }
