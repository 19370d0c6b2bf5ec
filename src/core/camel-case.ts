/** Names of options as fields of requests: `--registry-mirror` is `registryMirror`. */
export function camelCase(name: string): string {
  return name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}
