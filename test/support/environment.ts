/** Environment variables of the process of a test, which other tests have after it. */

/** Sets a variable until it is disposed of: `using _folder = withVariable('TMPDIR', box.path)`. */
export function withVariable(name: string, value: string): Disposable {
  const before = process.env[name];
  process.env[name] = value;
  return {
    [Symbol.dispose]: () => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    },
  };
}
