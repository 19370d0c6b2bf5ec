/** The list of functions in docs/library.md, generated from the exports of the library and the modules that they come from. */

const BEGIN = '<!-- functions: made by npm run docs -->';
const END = '<!-- end of the functions -->';

/** Source of a file below `src`. */
type Read = (path: string) => string;

interface Group {
  readonly title: string;
  /** One for each module, in the order of the exports. */
  readonly modules: readonly { readonly path: string; readonly functions: readonly string[] }[];
}

/** The exports of src/index.ts below each of its comments, without types. */
function groupsOf(index: string): readonly Group[] {
  return index
    .split(/^\/\/ /m)
    .slice(1)
    .map((part) => {
      const exported = [...part.matchAll(/^export \{([^}]*)\} from '\.\/([^']+)';/gm)];
      const modules = exported.map(([, names = '', path = '']) => ({
        path,
        functions: names
          .split(',')
          .map((name) => name.trim())
          .filter((name) => name !== '' && !name.startsWith('type ')),
      }));
      return {
        title: part.split(/\.?\n/, 1)[0] ?? '',
        modules: modules.filter(({ functions }) => functions.length > 0),
      };
    })
    .filter(({ modules }) => modules.length > 0);
}

/** The type that a function returns, as its module declares it: what a use case promises, or what a generator is. */
function resultOf(source: string, name: string): string {
  const useCase = new RegExp(String.raw`^export const ${name} = useCase\([^]*?\): Promise<(.*?)> =>`, 'm');
  const generator = new RegExp(String.raw`^export async function\* ${name}\([^]*?\): (.*?) \{$`, 'm');
  const result = useCase.exec(source)?.[1] ?? generator.exec(source)?.[1];
  if (result === undefined) throw new Error(`${name} of the library has no declared result`);
  return result;
}

/** All functions, in the order of the exports. */
export function functionsOf(read: Read): readonly string[] {
  return groupsOf(read('index.ts')).flatMap(({ modules }) => modules.flatMap(({ functions }) => functions));
}

/** Types of the language itself. */
const GLOBAL: ReadonlySet<string> = new Set(['AsyncGenerator', 'Readonly', 'Record', 'Uint8Array']);

/** The names of the library's types in the results of all functions, sorted. Throws for one that is not exported. */
export function resultTypes(read: Read): readonly string[] {
  const index = read('index.ts');
  const exported = new Set(
    [...index.matchAll(/^export [^;]*?\{([^}]*)\}/gm)].flatMap(([, names = '']) => names.match(/\w+/g)),
  );
  const modules = groupsOf(index).flatMap((group) => group.modules);
  const results = modules.flatMap(({ path, functions }) => functions.map((name) => resultOf(read(path), name)));
  const names = new Set(
    results.flatMap((result) => result.match(/\b[A-Z]\w+/g) ?? []).filter((name) => !GLOBAL.has(name)),
  );
  for (const name of names)
    if (!exported.has(name)) throw new Error(`${name} is a result of the library, but not exported`);
  return [...names].toSorted();
}

function rowOf(path: string, functions: readonly string[], source: string): string {
  const [, about] = /^\/\*\*\s+(?:\* )?([^]*?)\s*\*\//.exec(source) ?? [];
  if (about === undefined) throw new Error(`src/${path} says nothing about itself`);
  const names = functions.map((name) => `\`${name}\``).join(', ');
  const results = functions.map((name) => `\`${resultOf(source, name).replaceAll('|', String.raw`\|`)}\``).join(', ');
  return `| ${names} | ${results} | ${about.replaceAll(/\s*\n \* ?/g, ' ').replaceAll('|', String.raw`\|`)} |`;
}

/** The page with the generated part made again. */
export function withFunctions(page: string, read: Read): string {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`docs/library.md has no ${BEGIN} … ${END}`);
  resultTypes(read);
  const tables = groupsOf(read('index.ts')).map(({ title, modules }) => {
    const rows = modules.map(({ path, functions }) => rowOf(path, functions, read(path)));
    return [`### ${title}\n`, '| functions | they return | what they do |', '| --- | --- | --- |', ...rows].join('\n');
  });
  return `${before}${BEGIN}\n\n${tables.join('\n\n')}\n\n${END}${after}`;
}
