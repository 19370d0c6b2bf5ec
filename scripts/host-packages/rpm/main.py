"""Resolves names in one transaction with dnf's own library, fetches the packages and checks their signatures.

rpm.sh runs it with the Python that dnf itself runs with (3.6 is the oldest); status 96 when this one has no dnf.
`dnf download --resolve` would resolve every name by itself, so that two names that exclude each other both come down;
`dnf install --downloadonly` needs root.
"""
import difflib
import errno
import logging
import os
import re
import shutil
import sys

try:
    import dnf
    import dnf.conf
    import dnf.const
    import dnf.exceptions
    import dnf.rpm
    import dnf.subject
    import hawkey
except ImportError:
    # rpm.sh looks elsewhere then.
    sys.exit(96)
from fetch import digest_of, fetch, file_of
from modules import module_documents
from problem import ENV, OUT, STATE, Problem, address, one_line


def configured():
    """A dnf.Base with its repositories: the machine's own, or in private state those that were given."""
    private = ENV['CURLEW_MODE'] == 'host'
    version = ENV['CURLEW_OS'].split('-')[1]
    # Without root, dnf would make a folder for its cache here before anybody can name another.
    dnf.const.TMPDIR = os.path.join(STATE, 'tmp', '')
    conf = dnf.conf.Conf()
    if private:
        conf.installroot = os.path.join(STATE, 'root')
        conf.persistdir = os.path.join(STATE, 'persist')
        conf.varsdir = [os.path.join(STATE, 'vars')]
        arch = {'amd64': 'x86_64', 'arm64': 'aarch64'}[ENV['CURLEW_ARCH']]
        conf.substitutions['arch'] = conf.substitutions['basearch'] = arch
        conf.substitutions['releasever'] = version
    else:
        conf.read()
        conf.substitutions['releasever'] = dnf.rpm.detect_releasever(conf.installroot) or version
        conf.substitutions.update_from_etc(conf.installroot, conf.varsdir)
    if ENV.get('CURLEW_PLATFORM'):
        conf.module_platform_id = ENV['CURLEW_PLATFORM']
    if ENV.get('CURLEW_REPOSITORIES'):
        conf.reposdir = [os.path.join(STATE, 'repos')]
    conf.cachedir = os.path.join(STATE, 'cache')
    conf.logdir = os.path.join(STATE, 'log')
    conf.destdir = OUT
    conf.plugins = False
    conf.install_weak_deps = False
    conf.best = True
    conf.strict = True
    conf.deltarpm = False
    conf.zchunk = False
    conf.timeout = 30
    conf.retries = 3
    if ENV.get('CURLEW_AUTHORITIES'):
        conf.sslcacert = ENV['CURLEW_AUTHORITIES']
    base = dnf.Base(conf)
    base.read_all_repos()
    for repo in base.repos.iter_enabled():
        # A repository that is left out in silence would give another result.
        repo.skip_if_unavailable = False
        repo.pkgdir = OUT
    return base


class Failures(logging.Handler):
    """Keeps what dnf says of mirrors that failed: its exceptions leave the reason out."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.text = ''

    def emit(self, record):
        self.text = record.getMessage()


def load(base):
    if not any(base.repos.iter_enabled()):
        raise Problem(('repository', '-', 'no repository is enabled'))
    failures = Failures()
    logging.getLogger('dnf').addHandler(failures)
    for repo in base.repos.iter_enabled():
        try:
            repo.load()
        except dnf.exceptions.RepoError as error:
            reasons = [line.strip(' -') for line in failures.text.splitlines()[1:]]
            text = one_line('; '.join(sorted(set(reasons))) or error)
            if re.search(r'GPG|[Ss]ignature', str(error)):
                raise Problem(('signature', address(repo), '%s (%s)' % (one_line(error), text)))
            raise Problem(('repository', address(repo), text))
    try:
        base.fill_sack(load_system_repo=ENV['CURLEW_MODE'] != 'host' and ENV['CURLEW_RESOLVE'] == 'missing')
    except dnf.exceptions.RepoError as error:
        raise Problem(('repository', '-', one_line(error)))
    native = [base.conf.basearch, 'noarch']
    base.sack.add_excludes(base.sack.query().available().filter(arch__neq=native))


def best(base, name):
    """What a name stands for: the newest of each package of that name, of the repository that comes first; maybe none."""
    chosen = {}
    found = dnf.subject.Subject(name).get_best_query(base.sack).available()
    for package in sorted(found, key=lambda package: (package.repo.priority, package.repo.cost, package.repoid)):
        other = chosen.get(package.name)
        if other is None or (other.repo.priority == package.repo.priority and other.evr_lt(package)):
            chosen[package.name] = package
    return list(chosen.values())


def unknown(base, names):
    """Why there is no such package: what hides it, or names that are near."""
    lines = []
    every = sorted({package.name for package in base.sack.query().available()})
    for name in names:
        if base.sack.query(flags=hawkey.IGNORE_MODULAR_EXCLUDES).available().filter(name=name):
            lines.append(('conflict', name + ': belongs to module streams of which none is active'))
        elif base.sack.query(flags=hawkey.IGNORE_EXCLUDES).available().filter(name=name):
            lines.append(('conflict', name + ': not for ' + base.conf.basearch))
        else:
            lines.append(('missing', name))
            lines += [('near', name, near) for near in difflib.get_close_matches(name, every, 3, 0.6)]
    return Problem(*lines)


def transaction(base, names, files=()):
    """Everything that dnf would install for these names, and for packages of files, together."""
    base.reset(goal=True)
    try:
        base.install_specs(names)
        for package in files:
            base.package_install(package)
        base.resolve()
    except dnf.exceptions.Error as error:
        reasons = [one_line(line) for line in str(error).splitlines() if line.strip()]
        raise Problem(*[('conflict', reason) for reason in reasons[:12]])
    return set(base.transaction.install_set)


def resolve(base, names):
    """The packages to fetch, and all with which they can be installed."""
    lost = [name for name in names if not best(base, name)]
    if lost:
        raise unknown(base, lost)
    solved = transaction(base, names)
    if ENV['CURLEW_RESOLVE'] == 'none':
        return {package for name in names for package in best(base, name)}, solved
    chosen = set(solved)
    # A named package comes even when the machine has it.
    for name in names:
        candidates = best(base, name)
        if not {str(package) for package in candidates} & {str(package) for package in chosen}:
            chosen |= set(candidates)
    present = [name for name in ENV.get('CURLEW_BASE', '').split() if best(base, name)]
    if ENV['CURLEW_RESOLVE'] != 'missing' or ENV['CURLEW_MODE'] != 'host' or not present:
        return chosen, solved
    named = {str(package) for name in names for package in best(base, name)}
    there = {str(package) for package in transaction(base, present)} - named
    return {package for package in chosen if str(package) not in there}, solved


def version_of(package):
    evr = '%s-%s' % (package.version, package.release)
    return evr if package.epoch == 0 else '%d:%s' % (package.epoch, evr)


def required_names(base, packages, solved):
    """
    Names of what meets a direct requirement in the solved set and is not among the packages. A bare system has the -minimal
    variant of a package, which is then enough.
    """
    names = set()
    installed = {package.name for package in solved}
    for package in packages:
        for requirement in package.requires:
            able = {other.name for other in base.sack.query().available().filter(provides=requirement)}
            names |= {name + '-minimal' if name + '-minimal' in able else name for name in able & installed}
    return sorted(names - {package.name for package in packages})


def write(name, text):
    with open(os.path.join(ENV.get('CURLEW_RESULT') or os.path.join(STATE, 'result'), name), 'w', encoding='utf-8', errors='surrogateescape') as file:
        file.write(text)


def collect(names):
    with configured() as base:
        load(base)
        chosen, solved = resolve(base, names)
        packages = sorted(chosen, key=file_of)
        fetched = fetch(base, packages)
        rows = [(os.path.basename(file_of(package)), package.name, version_of(package), package.arch,
                 digest_of('sha256', file_of(package)), address(package.repo)) for package in packages]
        write('packages.tsv', ''.join('\t'.join(row) + '\n' for row in rows))
        write('requires', ''.join(name + '\n' for name in required_names(base, packages, solved)))
        write('fetched', '%d\n' % fetched)
        with open(os.path.join(STATE, 'revision'), 'w', encoding='ascii') as file:
            file.write('%d\n' % max(package.buildtime for package in packages))
        if ENV['CURLEW_MODULES'] == '1':
            with open(os.path.join(STATE, 'modules.yaml'), 'w', encoding='utf-8') as file:
                file.write(module_documents(base, packages))


def tell_requires(folder):
    """What the package files of a folder require, as an answer without packages."""
    files = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith('.rpm'))
    with configured() as base:
        load(base)
        try:
            packages = base.add_remote_rpms(files, strict=True)
        except OSError as error:
            raise Problem(('conflict', one_line(error)))
        write('packages.tsv', '')
        write('fetched', '0\n')
        solved = transaction(base, [], packages)
        write('requires', ''.join(name + '\n' for name in required_names(base, packages, solved)))


def make_room():
    """What came so far is worth nothing, and without it there is room for saying why."""
    shutil.rmtree(os.path.join(STATE, 'cache'), ignore_errors=True)
    for name in os.listdir(OUT):
        os.unlink(os.path.join(OUT, name))


def main():
    try:
        if ENV['CURLEW_TASK'] == 'requires':
            tell_requires(ENV['CURLEW_KNOWN'])
        else:
            collect(sys.argv[1:])
        return 0
    except Problem as problem:
        lines = problem.lines
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        lines = [('full', error.filename or STATE)]
    if lines[0][0] == 'full':
        make_room()
    for line in lines:
        print(': '.join(line), file=sys.stderr)
    write('problem', ''.join('\t'.join(one_line(part) for part in line) + '\n' for line in lines))
    return 1


sys.exit(main())
