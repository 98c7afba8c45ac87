/**
 * A browser by script: it keeps cookies, follows redirects, submits the forms that it is shown, and
 * stops where the app would take over. The service has a public name, and is reached where it listens.
 */
import { Effect } from "effect"

/** Where a browser has got to. */
export interface Seen {
  readonly url: string
  readonly status: number
  readonly body: string
}

/** A browser; `service` is where the service with the public address `baseUrl` listens. */
export const makeBrowser = (baseUrl: string, service: string) => {
  const cookies = new Map<string, Map<string, string>>()

  const here = (url: string) =>
    url.startsWith(baseUrl) ? service + url.slice(baseUrl.length) : url

  const isApp = (url: string) => !url.startsWith(baseUrl) && new URL(url).hostname !== "127.0.0.1"

  const load = async (url: string, form?: URLSearchParams): Promise<Seen> => {
    const address = new URL(here(url))
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

  /** The form of a page, with what is typed into it. */
  const submit = (seen: Seen, typed: Readonly<Record<string, string>>) => {
    const [, action = ""] = /<form[^>]* action="([^"]*)"/.exec(seen.body) ?? []
    const form = new URLSearchParams()
    for (const [input] of seen.body.matchAll(/<input[^>]*>/g)) {
      const [, name = ""] = /name="([^"]*)"/.exec(input) ?? []
      const [, value = ""] = /value="([^"]*)"/.exec(input) ?? []
      form.set(name, value)
    }
    for (const [name, value] of Object.entries(typed)) form.set(name, value)
    return load(new URL(action, seen.url).href, form)
  }

  /**
   * Signs in at the provider to which an address leads, or cancels; ends at the app, or before an error.
   * `form` is what a provider that returns with a form adds to it.
   */
  const signIn = (
    url: string,
    account: string,
    options: {
      readonly answer?: "yes" | "no"
      readonly form?: Readonly<Record<string, string>>
      /** Whether the form of the return is submitted. */
      readonly isReturned?: boolean
    } = {}
  ): Effect.Effect<Seen> =>
    Effect.promise(async () => {
      const { answer = "yes", form = {}, isReturned = true } = options
      const asked = await load(url)
      if (!asked.body.includes(`id="continue"`)) return asked
      const back = await submit(asked, { account, answer })
      return isReturned && back.body.includes("<form") ? submit(back, form) : back
    })

  return { load: (url: string) => Effect.promise(() => load(url)), signIn }
}
