/** JSON as a tree to open and close, with marks at the differences from the value before. */
import { useRef } from "preact/hooks"

type Json = Readonly<Record<string, unknown>>

const isParent = (value: unknown): value is Json => typeof value === "object" && value !== null

const differs = (value: unknown, before: unknown): boolean =>
  JSON.stringify(value) !== JSON.stringify(before)

/** Returns the value of the render before the last change. */
export const useBefore = <T,>(value: T): T => {
  const seen = useRef({ value, before: value })
  if (seen.current.value !== value) seen.current = { value, before: seen.current.value }
  return seen.current.before
}

const Node = ({
  before,
  name,
  value
}: {
  readonly name: string
  readonly value: unknown
  readonly before: unknown
}) => {
  if (!isParent(value) || Object.keys(value).length === 0) {
    return (
      <li>
        <span class="key">{name}</span>{" "}
        <span class={differs(value, before) ? "changed" : ""}>{JSON.stringify(value)}</span>
      </li>
    )
  }
  return (
    <li>
      <details open>
        <summary>
          <span class="key">{name}</span>{" "}
          <span class="soft">
            {Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`}
          </span>
        </summary>
        <Tree value={value} before={isParent(before) ? before : {}} />
      </details>
    </li>
  )
}

export const Tree = ({ before, value }: { readonly value: Json; readonly before: Json }) => (
  <ul class="tree">
    {Object.entries(value).map(([name, inner]) => (
      <Node key={name} name={name} value={inner} before={before[name]} />
    ))}
  </ul>
)
