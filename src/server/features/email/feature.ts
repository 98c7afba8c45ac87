/** Email sign-in, as the service composes it. */
import { EmailHttp } from "./handlers.ts"

export const email = { routes: EmailHttp }
