# Reports: runs in MLflow, pages with the verdicts, the outcome.
#   in: measurements/, tables/, figures/      out: tracking/, site/, pages/, claims.json, claims/, outcome/


# A store takes each run once.
rule track:
    input:
        measured,
        rendered,
    output:
        update(f"{S}/tracking/{{group}}.json"),
    log:
        f"{S}/logs/track/{{group}}.log",
    priority: 1000
    conda:
        "../environment.yml"
    params:
        uri=config["tracking"]["uri"],
        attempt=sending_attempt,
    script:
        "../workflow/scripts/track.py"


# All pages, with the verdicts on all claims.
rule site:
    input:
        measurements("all"),
        tables("all"),
        receipts("all"),
    output:
        site=directory(pages("all")),
        claims=verdicts("all"),
    log:
        f"{S}/logs/site.log",
    conda:
        "../environment.yml"
    params:
        settings=page_settings,
        claims=claims,
        archive=archived_beside,
        code=code_digest("agglearn_workflow.site.pages", "agglearn_workflow.claims.judging"),
    script:
        "../workflow/scripts/site.py"


# The pages of a source or of an experiment that is asked for alone.
use rule site as page with:
    input:
        measured,
        rendered,
        sent,
    output:
        site=directory(pages("{target}")),
        claims=verdicts("{target}"),
    log:
        f"{S}/logs/pages/{{target}}.log",


# A failed cell, table, figure or claim leaves no outcome: this job fails, and with it the workflow.
rule conclude:
    input:
        reported,
    output:
        outcome("{target}"),
    log:
        f"{S}/logs/outcome/{{target}}.log",
    conda:
        "../environment.yml"
    script:
        "../workflow/scripts/conclude.py"
