"""The words that make a claim of a fact doubtful: it is denied, supposed, asked for, reported or of another world. Pure."""

import re

UNSURE = re.compile(
    r"\b(?:not|never|no|none|cannot|neither|nor|or|if|whether|unless|would|could|might|may|should|must|perhaps|maybe|probably"
    r"|likely|possibl[ey]|presumably|apparently|seems?|guess\w*|think\w*|thought|believ\w*|assum\w*|suppos\w*|imagin\w*"
    r"|pretend\w*|claim\w*|say|says|said|saying|told|stat(?:e|es|ed|ing) that|argu\w*|suggest\w*|false|untrue|incorrect\w*"
    r"|wrong\w*|mistak\w*|error|myth\w*|misconception|instead|rather|except|than|least|most|over|under|between|once|formerly"
    r"|former|used to|until|before|future|will be|hypothetical\w*|let|denote\w*|question|asks?|asked|option|choices?|check\w*"
    r"|verif\w*|unknown|unclear|twice|half|double|times|plus|minus|sum|difference|product|ratio|total|average|per capita|only"
    r"|according to|one of|part of|some|any|estimate\w*|historical\w*|originally|initially|ancient|medieval)\b|n['’]t\b|\?|≠"
    r"|\\neq?(?![A-Za-z])",
    re.IGNORECASE,
)
# A place, time or source before a claim: "In 1900, the capital of ...", "According to Ann, ...".
FRAMED = re.compile(
    r"(?:^\W{0,20}|[,:]\s|\b(?:so|and|but|then|that|now|also)\s)(?:in(?! fact\b)|during|as of|according|under|by|at|for|within"
    r"|from|after|among|on (?:the|an?)|with)\b",
    re.IGNORECASE,
)
OTHER_WORLD = re.compile(
    r"\b(?:suppos(?:e|es|ed|ing)|imagin(?:e|es|ed|ing|ary)|pretend\w*|hypothetical\w*|fiction\w*|what if|alternate|fantasy"
    r"|parallel universe|in (?:this|the|a|our|my) (?:story|game|novel|book|puzzle|movie|world|universe|scenario)"
    r"|counterfactual\w*|assum(?:e|es|ed|ing)|redefin\w*|rename\w*|if (?:the|its|we)|contradiction|April Fool\w*|joke|riddle"
    r"|myth\w*|misconception\w*)\b",
    re.IGNORECASE,
)
REVOKED = re.compile(
    r"\b(?:wait|oops|actually|correction|incorrect\w*|mistake\w*|misread|not (?:true|correct|right)|is(?: not|n['’]t)"
    r" (?:true|correct|right|the case)|wrong|re-?check|scratch that|contradict\w*)\b",
    re.IGNORECASE,
)
