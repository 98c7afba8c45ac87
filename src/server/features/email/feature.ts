/** Email sign-in, as the service composes it. */
import { EmailHttp } from "./handlers.ts"
import { EmailPages } from "./pages.ts"

export const email = { routes: EmailHttp, pages: EmailPages }
