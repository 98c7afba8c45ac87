/** An example of each frame that a client sends, from the AsyncAPI document that the service itself serves. */
import { paths } from "#rpc/paths"
import { useLoad } from "../../parts/load.ts"

interface AsyncApi {
  readonly operations: Readonly<
    Record<string, { readonly action: string; readonly messages: ReadonlyArray<{ $ref: string }> }>
  >
  readonly components: {
    readonly messages: Readonly<
      Record<string, { readonly examples?: ReadonlyArray<{ readonly payload: unknown }> }>
    >
  }
}

type Examples = ReadonlyMap<string, string>

const read = async (signal: AbortSignal): Promise<Examples> => {
  const response = await fetch(paths.asyncapi, { signal })
  const { components, operations }: AsyncApi = await response.json()
  const examples = new Map<string, string>()
  for (const { action, messages } of Object.values(operations)) {
    // The first frame of a connection, which the client has sent.
    const names = messages.map(({ $ref }) => $ref.split("/").at(-1) ?? "")
    if (action !== "receive" || names[0] === "auth") continue
    for (const name of names) {
      const payload = components.messages[name]?.examples?.[0]?.payload
      examples.set(name, JSON.stringify(payload ?? { t: name }, null, 2))
    }
  }
  return examples
}

const none: Examples = new Map()

/** The examples by the type of the frame; none until they are read. */
export const useExamples = (): Examples => useLoad("asyncapi", read).data ?? none
