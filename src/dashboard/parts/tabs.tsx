/** Parts of a view, of which the address names the chosen one. */
import { useQueryValue } from "./current-view.ts"

/** The chosen name and its change; the first name is in no address. */
export const useTab = <N extends string>(
  names: readonly [N, ...ReadonlyArray<N>],
  parameter = "tab"
): readonly [N, (name: N) => void] => {
  const [value, setValue] = useQueryValue(parameter)
  const [first] = names
  return [
    names.find((name) => name === value) ?? first,
    (name) => setValue(name === first ? "" : name)
  ]
}

export const Tabs = <N extends string>({
  choose,
  chosen,
  label,
  names,
  texts
}: {
  readonly label: string
  readonly names: ReadonlyArray<N>
  readonly texts: Readonly<Record<N, string>>
  readonly chosen: N
  readonly choose: (name: N) => void
}) => (
  <div class="segment" role="group" aria-label={label}>
    {names.map((name) => (
      <button key={name} type="button" aria-pressed={name === chosen} onClick={() => choose(name)}>
        {texts[name]}
      </button>
    ))}
  </div>
)
