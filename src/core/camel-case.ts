/** An option name as the name of a request field: `--registry-mirror` is `registryMirror`. */
export function camelCase(name: string): string {
  return name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}
