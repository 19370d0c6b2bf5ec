/** Environment variables of the process of a test, which other tests have after it. */

/** Sets variables until they are disposed of: `using _folder = withVariables({ TMPDIR: box.path })`. */
export function withVariables(values: Readonly<Record<string, string>>): Disposable {
  const before = Object.keys(values).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, values);
  return {
    [Symbol.dispose]: () => {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    },
  };
}
