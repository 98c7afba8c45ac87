/**
 * A scripted browser: keeps cookies, follows redirects, submits forms and stops at the app. It maps the
 * public URL of the service to the address that the service listens on.
 */
import { Effect } from "effect"

/** The page at which the browser stopped. */
export interface Page {
  readonly url: string
  readonly status: number
  readonly body: string
}

/** Creates a browser. `service` is the address at which the service of `baseUrl` listens. */
export const makeBrowser = (baseUrl: string, service: string) => {
  const cookies = new Map<string, Map<string, string>>()

  const resolve = (url: string) =>
    url.startsWith(baseUrl) ? service + url.slice(baseUrl.length) : url

  const isApp = (url: string) => !url.startsWith(baseUrl) && new URL(url).hostname !== "127.0.0.1"

  const load = async (url: string, form?: URLSearchParams): Promise<Page> => {
    const address = new URL(resolve(url))
    const jar = cookies.get(address.origin) ?? new Map<string, string>()
    cookies.set(address.origin, jar)
    const response = await fetch(address, {
      redirect: "manual",
      headers: { cookie: Array.from(jar, ([name, value]) => `${name}=${value}`).join("; ") },
      ...(form === undefined ? {} : { method: "POST", body: form })
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === "") jar.delete(name)
      else jar.set(name, value)
    }
    const body = await response.text()
    const location = response.headers.get("location")
    if (location === null) return { url, status: response.status, body }
    const next = new URL(location, url).href
    if (isApp(next)) return { url: next, status: response.status, body: "" }
    return load(next)
  }

  /** Submits the form of a page with the typed values. */
  const submit = (page: Page, typed: Readonly<Record<string, string>>) => {
    const [, action = ""] = /<form[^>]* action="([^"]*)"/.exec(page.body) ?? []
    const form = new URLSearchParams()
    for (const [input] of page.body.matchAll(/<input[^>]*>/g)) {
      const [, name = ""] = /name="([^"]*)"/.exec(input) ?? []
      const [, value = ""] = /value="([^"]*)"/.exec(input) ?? []
      form.set(name, value)
    }
    for (const [name, value] of Object.entries(typed)) form.set(name, value)
    return load(new URL(action, page.url).href, form)
  }

  /**
   * Signs in at the provider of a URL, or cancels. Ends at the app or at an error page. `form` adds
   * fields to the form post of a provider that returns with one.
   */
  const signIn = (
    url: string,
    account: string,
    options: {
      readonly answer?: "yes" | "no"
      readonly form?: Readonly<Record<string, string>>
      /** Whether the form post to the callback is submitted. */
      readonly isReturned?: boolean
    } = {}
  ): Effect.Effect<Page> =>
    Effect.promise(async () => {
      const { answer = "yes", form = {}, isReturned = true } = options
      const signInPage = await load(url)
      if (!signInPage.body.includes(`id="continue"`)) return signInPage
      const back = await submit(signInPage, { account, answer })
      return isReturned && back.body.includes("<form") ? submit(back, form) : back
    })

  return { load: (url: string) => Effect.promise(() => load(url)), signIn }
}
