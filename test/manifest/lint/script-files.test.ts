import * as assert from '../../support/assert.ts';
import { lintFiles, told } from '../../support/lint.ts';
import { suite } from '../../support/suite.ts';

const test = suite('manifest/lint/script-files');

const SCRIPT = String.raw`ekco() {
  local src="$DIR/addons/ekco/1" dst="$DIR/kustomize/ekco"
  insert_resources "$dst/kustomization.yaml" own.yaml
  insert_resources "$dst/kustomization.yaml" missing.yaml
  cp "$src/absent.yaml" "$dst/copied.yaml"
  insert_resources "$dst/kustomization.yaml" copied.yaml
  insert_patches_strategic_merge "$dst/kustomization.yaml" absent.yaml
  render_yaml_file_2 "$src/tmpl-a.yaml" > "$dst/a.yaml"
  render_yaml_file_2 "$DIR/addons/ekco/1/sub/b.yaml" > "$dst/b.yaml"
  insert_resources "$dst/kustomization.yaml" a.yaml
  insert_resources "$dst/kustomization.yaml" "$name.yaml"
  insert_resources "$dst/kustomization.yaml" https://example.com/far.yaml
}
`;

test('a resource that the add-on does not have and the script does not make is found', async ({ signal }) => {
  const found = await lintFiles(
    { 'addons/ekco/1/install.sh': SCRIPT, 'addons/ekco/1/deep/own.yaml': 'a: 1\n' },
    { signal },
  );
  assert.equal(told(found), ['install.sh:4:46 warning hook/no-resource', 'install.sh:7:60 warning hook/no-resource']);
});

test('a backtick in a template that the script renders is found, an escaped one or one in another file is not', async ({
  signal,
}) => {
  const mine = (path: string): string => `addons/ekco/1/${path}`;
  const render = SCRIPT.replaceAll(/^ .*insert_.*\n/gm, '');
  const files = {
    [mine('install.sh')]: render,
    [mine('tmpl-a.yaml')]: 'a: 1\n# see `date`\n',
    [mine('sub/b.yaml')]: '# \\`date\\`\n',
    [mine('b.yaml')]: '# `date`\n',
  };
  assert.equal(told(await lintFiles(files, { signal })), ['tmpl-a.yaml:2:7 warning yaml/backtick']);
  const more = told(await lintFiles({ ...files, [mine('sub/b.yaml')]: '# `id`\n' }, { signal }));
  assert.ok(more.includes('sub/b.yaml:1:3 warning yaml/backtick'), more.join());
});

test('a variable of the add-on that is neither a setting nor set by the script is found in what the script renders', async ({
  signal,
}) => {
  const mine = (path: string): string => `addons/ekco/1/${path}`;
  const render = SCRIPT.replaceAll(/^ .*insert_.*\n/gm, '').replace('local', 'local EKCO_MADE="$EKCO_READ"');
  const text =
    'a: ${EKCO_LOG_LEVEL} $EKCO_VERSION ${EKCO_MADE}\nb: ${EKCO_LOG_LEVL} ${EKCO_OTHER-} \\${EKCO_TEXT} ${HOSTNAME}\nc: $EKCO_READ\n';
  const files = { [mine('install.sh')]: render, [mine('tmpl-a.yaml')]: text, [mine('b.yaml')]: '# $EKCO_X\n' };
  assert.equal(told(await lintFiles(files, { signal })), []);
  const schema = JSON.stringify({ type: 'object', properties: { logLevel: { type: 'string' } } });
  const found = await lintFiles({ ...files, [mine('schema.json')]: schema }, { signal });
  assert.equal(told(found), ['tmpl-a.yaml:2:6 warning yaml/variable', 'tmpl-a.yaml:3:5 warning yaml/variable']);
  assert.equal(
    found.diagnostics.map(({ hint }) => hint),
    ['did you mean "EKCO_LOG_LEVEL"?', 'write ${EKCO_READ-} if that is meant'],
  );
});

test.run();
