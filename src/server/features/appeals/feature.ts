/** Appeals, as the service composes them. */
import { AppealsHttp } from "./handlers.ts"

export const appeals = { routes: AppealsHttp }
