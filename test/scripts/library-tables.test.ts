/** The list of functions in docs/library.md. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { resultTypes, withFunctions } from '../../scripts/docs/library-tables.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('the functions of the library');
const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, 'src', path), 'utf8');
const page = readFileSync(join(ROOT, 'docs/library.md'), 'utf8');

test('the page has the list as npm run docs makes it', () => {
  assert.is(withFunctions(page, read), page, 'docs/library.md is stale: npm run docs');
});

test('a function without a declared result, and a module without a description, are refused', () => {
  const index = "// Tools.\nexport { make, type Made } from './app/make.ts';\n";
  const module =
    '/** Makes it. */\nexport const make = useCase(MAKE, async (request): Promise<Made | undefined> => {\n';
  const made = (source: string): string =>
    withFunctions(page, (path) => (path === 'index.ts' ? index : source)).replace(/^.*(?=### Tools)|<!-- end.*$/gs, '');
  assert.match(made(module), '| `make` | `Made \\| undefined` | Makes it. |');
  const refused = (source: string): string => {
    try {
      return made(source);
    } catch (error) {
      return String(error);
    }
  };
  assert.match(refused(module.replace('/** Makes it. */\n', '')), /src\/app\/make\.ts says nothing/);
  assert.match(
    refused(module.replace(': Promise<Made | undefined>', '')),
    /make of the library has no declared result/,
  );
});

test('a result whose type is not exported is refused', () => {
  const module = '/** Makes it. */\nexport const make = useCase(MAKE, async (request): Promise<readonly Made[]> => {\n';
  const types = (names: string): string => {
    const index = `// Tools.\nexport { ${names} } from './app/make.ts';\n`;
    try {
      return resultTypes((path) => (path === 'index.ts' ? index : module)).join(' ');
    } catch (error) {
      return String(error);
    }
  };
  assert.is(types('make, type Made'), 'Made');
  assert.match(types('make'), /Made is a result of the library, but not exported/);
});

test.run();
