import { FLAGS, readFlags, takesValue, withFlags } from '../../src/spec/flags.ts';
import { parseInstaller } from '../../src/spec/parse.ts';
import { settingOf } from '../../src/spec/settings.ts';
import { shellVariables } from '../../src/spec/variables.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/flags');

const HEAD = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:\n';

function installer(spec = '  kubernetes: {version: 1.26.3}\n') {
  const { installer: read, diagnostics } = parseInstaller('i.yaml', `${HEAD}${spec}`);
  if (read === undefined) throw new Error(JSON.stringify(diagnostics));
  return read;
}

function variables(words: readonly string[], spec?: string): Readonly<Record<string, string>> {
  const flags = readFlags(words);
  return Object.fromEntries([...shellVariables(withFlags(installer(spec), flags), new Map()), ...flags.variables]);
}

test('21: a version loses its v, and a value may hold equal signs', () => {
  const out = variables(['kubernetes-version=v1.17.3', 'kubeadm-token=token=with=equals=', 'labels=a=b,c=d']);
  assert.is(out['KUBERNETES_VERSION'], '1.17.3');
  assert.is(out['KUBEADM_TOKEN'], 'token=with=equals=');
  assert.is(out['NODE_LABELS'], 'a=b,c=d');
});

test('a mistake in a flag is reported for the flag, not for the spec', () => {
  const { addons } = withFlags(installer(), readFlags(['kubernetes-version=1.27.0', 'ha']));
  const [{ requestedBy, places } = {}] = addons;
  assert.is(requestedBy?.file, 'the flag kubernetes-version');
  assert.is(places?.get('HACluster')?.file, 'the flag ha');
});

test('21: addresses without proxy are added to those of the spec', () => {
  const flag = 'additional-no-proxy-addresses=10.0.0.1,.corp';
  const spec = '  kurl: {additionalNoProxyAddresses: [registry.internal]}\n';
  assert.is(
    variables([flag, 'additional-no-proxy-addresses=b'], spec)['ADDITIONAL_NO_PROXY_ADDRESSES'],
    'registry.internal,10.0.0.1,.corp,b',
  );
  assert.is(variables([flag])['ADDITIONAL_NO_PROXY_ADDRESSES'], '10.0.0.1,.corp');
});

test('every flag is taken: each setting or variable holds what the flag says', () => {
  for (const [name, meaning] of Object.entries(FLAGS)) {
    const [specName = '', field = ''] = meaning.kind === 'setting' ? meaning.setting.split('.') : [];
    const setting = settingOf(specName, field);
    const value = setting?.kind === 'integer' ? '7' : '1.2.3';
    const flags = readFlags([takesValue(meaning) ? `${name}=${value}` : name]);
    const out = variables([takesValue(meaning) ? `${name}=${value}` : name]);
    const expected = takesValue(meaning) ? value : '1';
    if (meaning.kind === 'setting') assert.is(out[setting?.variable ?? ''], expected, name);
    else if (meaning.kind === 'variable') assert.is(out[meaning.variable], expected, name);
    else if (meaning.kind === 'nothing')
      assert.match(flags.notes.join(), `the flag ${name} has no effect: ${meaning.why}`);
    else
      assert.ok(
        [flags.overlay, flags.installDirectory].some((one) => one?.startsWith('1.2.3')),
        name,
      );
  }
});

test('a switch may say that it is one', () => {
  for (const word of ['ha', 'ha=1', 'ha=true', 'ha=']) assert.is(variables([word])['HA_CLUSTER'], '1');
});

test('hosts may stand several times, and the install folder is the one that kURL makes below', () => {
  const flags = readFlags(['primary-host=a', 'primary-host=b', 'secondary-host=c', 'kurl-install-directory=/data/']);
  assert.equal(
    [...flags.variables],
    [
      ['PRIMARY_HOST', 'a,b'],
      ['SECONDARY_HOST', 'c'],
    ],
  );
  assert.is(flags.installDirectory, '/data/kurl');
});

test('a folder whose ~ no shell has replaced is refused, so that no folder of this name is made', () => {
  for (const name of ['kurl-install-directory', 'installer-spec-file']) {
    const { hint } = assert.throwsWith(
      () => readFlags([`${name}=~/x`]),
      'USAGE',
      new RegExp(`^${name} ~/x: the shell `),
    );
    assert.match(hint ?? '', 'write $HOME/x');
  }
});

test('a flag takes the place of a setting, whatever its case', () => {
  const spec = '  kubernetes: {version: "1", haCluster: false, masterAddress: a}\n';
  const out = variables(['ha', 'kubernetes-master-address=b'], spec);
  assert.equal([out['HA_CLUSTER'], out['KUBERNETES_MASTER_ADDR']], ['1', 'b']);
});

test('a flag of an add-on that the spec does not have sets its variable and adds no add-on', () => {
  const flags = readFlags(['docker-registry-ip=10.0.0.9']);
  const changed = withFlags(installer(), flags);
  assert.equal(
    changed.addons.map(({ name }) => name),
    ['kubernetes'],
  );
  assert.is(Object.fromEntries(shellVariables(changed, new Map()))['DOCKER_REGISTRY_IP'], '10.0.0.9');
});

for (const [word, hint] of [
  ['site/bundle.tar.gz', 'specify the file with an option: --bundle site/bundle.tar.gz'],
  ['installer.yaml', 'specify the file with an option: --installer installer.yaml'],
] as const) {
  test(`a file without its option is refused with the option: ${word}`, () => {
    assert.is(assert.throwsWith(() => readFlags(['ha', word]), 'USAGE').hint, hint);
  });
}

for (const [words, message] of [
  [['certkey'], 'unknown flag "certkey", did you mean cert-key?'],
  [['BaD FlAgS'], 'unknown flag "BaD FlAgS"'],
  [[''], 'unknown flag ""'],
  [['__proto__'], 'unknown flag "__proto__"'],
  [['constructor=x'], 'unknown flag "constructor"'],
  [['cert-key'], 'the flag cert-key requires a value: cert-key=…'],
  [['cert-key='], 'the flag cert-key requires a value: cert-key=…'],
  [['ha=no'], 'the flag ha takes no value'],
  [['ha', 'ha'], 'the flag ha is given twice'],
  [['cert-key=a', 'cert-key=b'], 'the flag cert-key is given twice'],
  [['container-log-max-files=many'], 'the flag container-log-max-files must be a whole number'],
  [
    ['haa', 'labels', 'ha', 'ha'],
    'unknown flag "haa", did you mean ha?; the flag labels requires a value: labels=…; the flag ha is given twice',
  ],
] as const) {
  test(`21: ${JSON.stringify(words)} is refused`, () => {
    const error = assert.throwsWith(() => readFlags(words), 'USAGE');
    assert.is(error.message, message);
  });
}

test('21: the values of flags, which may be secret, stand in no message', () => {
  const words = [
    'kubeadm-token=s3cret',
    'kubeadm-token=s3cret',
    'kubeadm-tokn=s3cret',
    'ha=s3cret',
    'container-log-max-files=s3cret',
  ];
  const error = assert.throwsWith(() => readFlags(words), 'USAGE');
  assert.not.match(`${error.message}${error.hint ?? ''}`, 's3cret');
});

test('a version is for an add-on that is there, and must be one', () => {
  const spec = '  kurl: {}\n';
  assert.throwsWith(() => variables(['kubernetes-version=1.2.3'], spec), 'USAGE', /the spec has no kubernetes$/);
  assert.throwsWith(() => variables(['kubernetes-version=../../x']), 'USAGE', /not a version$/);
});

test.run();
